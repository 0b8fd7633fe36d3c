package nettrace

import "strings"

// A Source says who wrote an event, as far as readers treat its events apart from those of
// all other providers. See Metadata.Source.
type Source uint8

// Sources.
const (
	SourceOther     Source = iota // an EventSource, or another provider
	SourceRuntime                 // ProviderRuntime
	SourceRundown                 // state of the runtime at the end, or the start: names
	SourceSampler                 // the runtime's sample profiler
	SourceEventPipe               // about the process
	SourceEvents                  // Universal.Events of v6: samples of the machine
	SourceSystem                  // Universal.System of v6: processes, mappings, symbols
)

var sources = map[string]Source{
	ProviderRuntime:                  SourceRuntime,
	providerRundown:                  SourceRundown,
	ProviderSampler:                  SourceSampler,
	"Microsoft-DotNETCore-EventPipe": SourceEventPipe,
	providerEvents:                   SourceEvents,
	providerSystem:                   SourceSystem,
}

// OfRuntime reports whether a provider is the runtime itself, or EventPipe, and no EventSource of
// the program or of a library.
func OfRuntime(provider string) bool {
	return strings.HasPrefix(provider, ProviderRuntime) || strings.HasPrefix(provider, "Microsoft-DotNETCore-")
}

// A Role says what an event is to those who symbolize or sample, so that they
// need not compare names. See Metadata.Role.
type Role uint8

// Roles. MethodXxx, ModuleXxx and the like come from the runtime, the last group
// from Universal.Events and Universal.System of v6.
const (
	RoleNone Role = iota

	RoleSample             // SampleProfiler; see Event.SampleType
	RoleMethodLoad         // Event.Method
	RoleMethodUnload       // Event.Method
	RoleMethodDCStart      // Event.Method: rundown at the start, of old runtimes by their own provider
	RoleMethodDCStop       // Event.Method: rundown at the end, likewise
	RoleModuleLoad         // Event.Module; ModuleLoad and DomainModuleLoad
	RoleModuleUnload       // Event.Module
	RoleModuleDCStart      // Event.Module; ModuleDCStart and DomainModuleDCStart
	RoleModuleDCStop       // Event.Module; ModuleDCStop and DomainModuleDCStop
	RoleR2REntryPoint      // R2RGetEntryPoint
	RoleILMap              // MethodILToNativeMap, also of the rundown
	RoleRuntimeInformation // runtime version, also of the rundown
	RoleProcessInfo        // command line, OS, architecture
	RoleRundownStart       // DCEndInit
	RoleRundownComplete    // DCEndComplete: no name is missing
	RoleThreadCreated

	RoleCPU             // CPU sample; Event.UniversalValue is its weight
	RoleContextSwitch   // cswitch; Event.UniversalValue is the time switched out, in ticks from Event.Time on
	RolePageFault       // soft_page_fault, hard_page_fault, page_fault_user, ...
	RoleProcess         // ExistingProcess, ProcessCreate; Event.Process
	RoleProcessExit     // ProcessExit
	RoleMapping         // ProcessMapping; Event.Mapping
	RoleSymbol          // ProcessSymbol; Event.Symbol
	RoleMappingMetadata // ProcessMappingMetadata; Event.MappingMetadata
)

// NamesMethods reports whether events of role r tell what code is called, in which case
// their stacks say nothing of the program.
func (r Role) NamesMethods() bool {
	switch r {
	case RoleMethodLoad, RoleMethodUnload, RoleMethodDCStart, RoleMethodDCStop, RoleILMap:
		return true
	}
	return false
}

// Classify sets Source and Role by provider and id. A Reader does so; it is for those who
// make up events.
func (m *Metadata) Classify() {
	m.Source = sources[m.Provider]
	m.Role = RoleNone
	switch m.Source {
	case SourceSampler:
		if m.EventID == 0 {
			m.Role = RoleSample
		}
	case SourceEventPipe:
		if m.EventID == 1 {
			m.Role = RoleProcessInfo
		}
	case SourceEvents:
		m.Role = machineRole(m.Name)
	default:
		m.Role = roles[m.Source][m.EventID]
	}
}

// machineRole is that of an event of Universal.Events; their ids are not stable. Page faults
// are called soft_page_fault, hard_page_fault, page_fault_user, page_fault_kernel: all have
// one frame of address 0 and no stack (nettrace.md section 12).
func machineRole(name string) Role {
	switch {
	case name == "cpu":
		return RoleCPU
	case name == "cswitch":
		return RoleContextSwitch
	case strings.Contains(name, "page_fault"):
		return RolePageFault
	}
	return RoleNone
}

// roles are those of event ids: ClrEtwAll.man of dotnet/runtime for the runtime and its
// rundown. The same id is another event in these two.
var roles = map[Source]map[int]Role{
	SourceRuntime: {
		85:  RoleThreadCreated,
		137: RoleMethodDCStart, // .NET Core 2.0 and before, as are the next three
		138: RoleMethodDCStop,
		139: RoleMethodDCStart,
		140: RoleMethodDCStop,
		141: RoleMethodLoad,
		142: RoleMethodUnload,
		143: RoleMethodLoad,
		144: RoleMethodUnload,
		151: RoleModuleLoad, // DomainModuleLoad
		152: RoleModuleLoad,
		153: RoleModuleUnload,
		159: RoleR2REntryPoint,
		187: RoleRuntimeInformation,
		190: RoleILMap,
	},
	SourceRundown: {
		141: RoleMethodDCStart,
		142: RoleMethodDCStop,
		143: RoleMethodDCStart,
		144: RoleMethodDCStop,
		146: RoleRundownComplete,
		148: RoleRundownStart,
		149: RoleILMap,
		150: RoleILMap,
		151: RoleModuleDCStart, // DomainModuleDCStart
		152: RoleModuleDCStop,  // DomainModuleDCStop
		153: RoleModuleDCStart,
		154: RoleModuleDCStop,
		187: RoleRuntimeInformation,
	},
	SourceSystem: {
		0: RoleProcess,
		1: RoleProcess,
		2: RoleProcessExit,
		3: RoleMapping,
		4: RoleSymbol,
		5: RoleMappingMetadata,
	},
}

// A SampleType says what the runtime's sample profiler saw the thread do.
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

// SwitchedOut returns for how long, ns, the thread of a cswitch event was off its CPU: from
// Event.Time on, as the event is written when the thread comes back, with the time at which it had
// left (one-collect, helpers/exporting/os/linux.rs). 0 if the payload does not tell.
func (r *Reader) SwitchedOut(ev *Event) int64 {
	v, err := ev.UniversalValue()
	if err != nil || v >= 1<<62 {
		return 0
	}
	return max(0, r.Nanos(ev.Time+int64(v))-r.Nanos(ev.Time))
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
	switch ev.Metadata.EventID {
	case 139, 140, 143, 144:
		m.Verbose = true
	default:
		m.Verbose = false
	}
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
	AppDomainID          uint64 // of the DomainModule events
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
	*m = Module{ModuleID: c.U64(), AssemblyID: c.U64()}
	if id := ev.Metadata.EventID; id == 151 || id == 152 && ev.Metadata.Source == SourceRundown {
		m.AppDomainID = c.U64()
	}
	m.Flags = ModuleFlags(c.U32())
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
