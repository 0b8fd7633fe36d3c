package nettrace

// A Role tells what an event is to those who symbolize or sample, so that they
// need not compare names. See Metadata.Role.
type Role uint8

// Roles. MethodXxx, ModuleXxx and the like come from the runtime, the last group
// from Universal.Events and Universal.System of v6.
const (
	RoleNone Role = iota

	RoleSample             // SampleProfiler; see Event.SampleType
	RoleMethodLoad         // Event.Method
	RoleMethodUnload       // Event.Method
	RoleMethodDCStart      // Event.Method: rundown at the start
	RoleMethodDCStop       // Event.Method: rundown at the end
	RoleModuleLoad         // Event.Module
	RoleModuleUnload       // Event.Module
	RoleModuleDCStart      // Event.Module
	RoleModuleDCStop       // Event.Module
	RoleR2REntryPoint      // R2RGetEntryPoint
	RoleILMap              // MethodILToNativeMap, also of the rundown
	RoleRuntimeInformation // runtime version, also of the rundown
	RoleProcessInfo        // command line, OS, architecture
	RoleRundownStart       // DCEndInit
	RoleRundownComplete    // DCEndComplete: no name is missing
	RoleThreadCreated

	RoleCPU             // CPU sample; Event.UniversalValue is its weight
	RoleContextSwitch   // cswitch; Event.UniversalValue is the time switched out, in ticks
	RolePageFault       // soft_page_fault, hard_page_fault, page_fault_user, ...
	RoleProcess         // ExistingProcess, ProcessCreate; Event.Process
	RoleProcessExit     // ProcessExit
	RoleMapping         // ProcessMapping; Event.Mapping
	RoleSymbol          // ProcessSymbol; Event.Symbol
	RoleMappingMetadata // ProcessMappingMetadata; Event.MappingMetadata
)

// findRole looks at provider and id, or for Universal.Events at the name:
// the ids of those are not stable.
func findRole(m *Metadata) Role {
	switch m.Provider {
	case providerSampler:
		if m.EventID == 0 {
			return RoleSample
		}
	case providerRuntime:
		switch m.EventID {
		case 85:
			return RoleThreadCreated
		case 141, 143:
			return RoleMethodLoad
		case 142, 144:
			return RoleMethodUnload
		case 152:
			return RoleModuleLoad
		case 153:
			return RoleModuleUnload
		case 159:
			return RoleR2REntryPoint
		case 187:
			return RoleRuntimeInformation
		case 190:
			return RoleILMap
		}
	case providerRundown:
		switch m.EventID {
		case 141, 143:
			return RoleMethodDCStart
		case 142, 144:
			return RoleMethodDCStop
		case 146:
			return RoleRundownComplete
		case 148:
			return RoleRundownStart
		case 149, 150:
			return RoleILMap
		case 153:
			return RoleModuleDCStart
		case 154:
			return RoleModuleDCStop
		case 187:
			return RoleRuntimeInformation
		}
	case "Microsoft-DotNETCore-EventPipe":
		if m.EventID == 1 {
			return RoleProcessInfo
		}
	case providerEvents:
		switch m.Name {
		case "cpu":
			return RoleCPU
		case "cswitch":
			return RoleContextSwitch
		case "soft_page_fault", "hard_page_fault", "page_fault_user", "page_fault_kernel":
			return RolePageFault
		}
	case providerSystem:
		switch m.EventID {
		case 0, 1:
			return RoleProcess
		case 2:
			return RoleProcessExit
		case 3:
			return RoleMapping
		case 4:
			return RoleSymbol
		case 5:
			return RoleMappingMetadata
		}
	}
	return RoleNone
}

// A SampleType tells what the runtime's sample profiler saw the thread do.
type SampleType uint32

// Sample types; ep-sample-profiler.c of dotnet/runtime writes them.
const (
	SampleError    SampleType = 0
	SampleExternal SampleType = 1 // outside of managed code: blocked, waiting or in native code
	SampleManaged  SampleType = 2 // in managed code
)

// SampleType returns the type of a RoleSample event, SampleError if it has none.
func (ev *Event) SampleType() SampleType {
	n, _ := u32At(ev.Payload, 0)
	return SampleType(n)
}

// UniversalValue returns the value of an event of Universal.Events: weight of a
// CPU sample, ticks of a context switch.
func (ev *Event) UniversalValue() (uint64, error) {
	c := ev.Cursor()
	v := c.Varuint()
	return v, c.Err()
}

// A Method is the payload of a method load, unload or rundown event. Texts are
// valid as long as the payload.
type Method struct {
	MethodID, ModuleID uint64
	StartAddress       uint64
	Size               uint32 // of the code, in bytes
	Token              uint32
	Flags              MethodFlags
	// Verbose events have the names.
	Verbose                    bool
	Namespace, Name, Signature Text
	ReJITID                    uint64
}

// MethodFlags are those of the MethodFlagsMap of ClrEtwAll.man, dotnet/runtime.
type MethodFlags uint32

// Method flags.
const (
	MethodDynamic       MethodFlags = 1 << iota // IL stub or DynamicMethod
	MethodGeneric                               //
	MethodSharedGeneric                         // has shared generic code
	MethodJitted                                // else precompiled (ReadyToRun)
	MethodJitHelper                             //
)

// Tier is the optimization tier: 0 unknown, 1 MinOpt, 2 optimized, 3 tier 0, 4
// tier 1, 5 OSR, 6 instrumented, 7 tier 1 instrumented.
func (f MethodFlags) Tier() int { return int(f >> 7 & 7) }

// Extent is 0 for the hot part of a method's code and 1 for the cold one.
func (f MethodFlags) Extent() int { return int(f >> 28) }

// Method decodes an event of role RoleMethodLoad, Unload, DCStart or DCStop into m. The
// error tells of a payload that is too short or whose strings do not end.
func (ev *Event) Method(m *Method) error {
	c := ev.Cursor()
	m.MethodID, m.ModuleID, m.StartAddress = c.U64(), c.U64(), c.U64()
	m.Size, m.Token, m.Flags = c.U32(), c.U32(), MethodFlags(c.U32())
	m.Namespace, m.Name, m.Signature, m.ReJITID = Text{}, Text{}, Text{}, 0
	m.Verbose = ev.Metadata.EventID == 143 || ev.Metadata.EventID == 144
	if m.Verbose {
		m.Namespace, m.Name, m.Signature = c.UTF16(), c.UTF16(), c.UTF16()
	}
	err := c.err
	c.U16() // CLR instance
	if ev.Version >= 2 {
		m.ReJITID = c.U64()
	}
	return err
}

// A Module is the payload of a module load, unload or rundown event.
type Module struct {
	ModuleID, AssemblyID uint64
	Flags                ModuleFlags
	ILPath, NativePath   Text
	ManagedPDB           GUID // version 2
	ManagedPDBAge        uint32
	ManagedPDBPath       Text
}

// ModuleFlags are those of the ModuleFlagsMap of ClrEtwAll.man, dotnet/runtime.
type ModuleFlags uint32

// Module flags.
const (
	ModuleDomainNeutral ModuleFlags = 1 << iota
	ModuleNative
	ModuleDynamic
	ModuleManifest
	_
	ModuleReadyToRun
	ModulePartialReadyToRun
)

// Module decodes an event of role RoleModuleLoad, Unload, DCStart or DCStop into m.
func (ev *Event) Module(m *Module) error {
	c := ev.Cursor()
	*m = Module{ModuleID: c.U64(), AssemblyID: c.U64(), Flags: ModuleFlags(c.U32())}
	c.U32()
	m.ILPath, m.NativePath = c.UTF16(), c.UTF16()
	err := c.err
	c.U16()
	if ev.Version >= 2 && c.err == nil {
		m.ManagedPDB, m.ManagedPDBAge, m.ManagedPDBPath = c.GUID(), c.U32(), c.UTF16()
	}
	return err
}

// A Process is the payload of ExistingProcess and ProcessCreate of Universal.System. Whose
// it is tells Event.ProcessID.
type Process struct {
	NamespaceID         uint64
	Name, NamespaceName Text
}

// Process decodes an event of role RoleProcess.
func (ev *Event) Process(p *Process) error {
	c := ev.Cursor()
	*p = Process{c.Varuint(), c.String16(), c.String16()}
	return c.err
}

// A Mapping is the payload of ProcessMapping.
type Mapping struct {
	ID         uint64
	Start, End uint64 // End as in the file: exclusive if a multiple of the page size, else inclusive
	FileOffset uint64
	FileName   Text
	MetadataID uint64 // 0 is none
}

// Mapping decodes an event of role RoleMapping.
func (ev *Event) Mapping(m *Mapping) error {
	c := ev.Cursor()
	*m = Mapping{c.Varuint(), c.Varuint(), c.Varuint(), c.Varuint(), c.String16(), c.Varuint()}
	return c.err
}

// A Symbol is the payload of ProcessSymbol.
type Symbol struct {
	ID, MappingID uint64
	Start, End    uint64 // End is inclusive
	Name          Text
}

// Symbol decodes an event of role RoleSymbol.
func (ev *Event) Symbol(s *Symbol) error {
	c := ev.Cursor()
	*s = Symbol{c.Varuint(), c.Varuint(), c.Varuint(), c.Varuint(), c.String16()}
	return c.err
}

// MappingMetadata is the payload of ProcessMappingMetadata: two JSON texts, either may be empty.
type MappingMetadata struct {
	ID              uint64
	Symbol, Version Text
}

// MappingMetadata decodes an event of role RoleMappingMetadata.
func (ev *Event) MappingMetadata(m *MappingMetadata) error {
	c := ev.Cursor()
	*m = MappingMetadata{c.Varuint(), c.String16(), c.String16()}
	return c.err
}
