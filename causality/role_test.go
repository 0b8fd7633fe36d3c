package causality

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRoleOf(t *testing.T) {
	for name, want := range map[string]Role{
		"App!App.Program.Main()": Plain,
		"System.Private.CoreLib!System.Threading.Thread.StartCallback()":                                                                             ThreadTop,
		"System.Private.CoreLib!System.Threading.ThreadPoolWorkQueue.Dispatch()":                                                                     Dispatch,
		"System.Private.CoreLib!System.Threading.ExecutionContext.RunInternal(class A,class B)":                                                      Captured,
		"System.Private.CoreLib!System.Threading.ExecutionContext.RunFromThreadPoolDispatchLoop()":                                                   Captured,
		"System.Private.CoreLib!System.Threading.QueueUserWorkItemCallback.Execute()":                                                                Captured,
		"System.Private.CoreLib!System.Threading.QueueUserWorkItemCallback`1[System.__Canon].Execute()":                                              Captured,
		"System.Private.CoreLib!System.Threading.QueueUserWorkItemCallbackDefaultContext.Execute()":                                                  Inside,
		"System.Private.CoreLib!System.Threading.QueueUserWorkItemCallbackDefaultContext`1[System.__Canon].Execute()":                                Inside,
		"System.Private.CoreLib!System.Threading.ExecutionContext.OnValuesChanged(class A,class A)":                                                  Turns,
		"System.Private.CoreLib!System.Threading.ExecutionContext.SetLocalValue(class A)":                                                            Inside,
		"System.Private.CoreLib!System.Runtime.CompilerServices.AsyncMethodBuilderCore.Start(!!0&)":                                                  Scoped,
		"System.Private.CoreLib!System.Runtime.CompilerServices.AsyncHelpers+ThunkTaskCore.MoveNext(":                                                Captured,
		"System.Private.CoreLib!System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1[System.__Canon].SetExistingTaskResult(class A)":             Completes,
		"System.Private.CoreLib!System.Runtime.CompilerServices.TaskAwaiter.GetResult()":                                                             Library,
		"System.Private.CoreLib!System.Diagnostics.Tracing.EventSource.WriteEvent(int32)":                                                            Tracing,
		"System.Private.CoreLib!System.Threading.Tasks.TplEventSource.TraceSynchronousWorkEnd(value class A)":                                        Tracing,
		"System.Private.CoreLib!System.Threading.Thread.Sleep(int32)":                                                                                Sleeps,
		"System.Private.CoreLib!System.Threading.Monitor.Enter_Slowpath(class System.Object)":                                                        Locks,
		"System.Private.CoreLib!System.Threading.Lock.EnterScope()":                                                                                  Locks,
		"System.Private.CoreLib!System.Threading.Monitor.Wait(class System.Object,int32)":                                                            Waits,
		"System.Private.CoreLib!System.Threading.Tasks.Task.SpinThenBlockingWait(int32)":                                                             Waits,
		"System.Private.CoreLib!System.GC.WaitForPendingFinalizers()":                                                                                Waits,
		"System.Private.CoreLib!System.GC.Collect(int32)":                                                                                            Library,
		"System.Private.CoreLib!System.Threading.WaitHandle.WaitOneNoCheck(int32)":                                                                   Waits,
		"System.Private.CoreLib!System.Threading.LowLevelLifoSemaphore.WaitNative(class A)":                                                          Parks,
		"System.Private.CoreLib!System.Threading.LowLevelLifoSemaphore.ReleaseCore(int32)":                                                           Inside,
		"System.Private.CoreLib!System.Threading.ReaderWriterLockSlim.TryEnterReadLockCore(value class A)":                                           Locks,
		"System.Private.CoreLib!System.Threading.ReaderWriterLockSlim.WaitOnEvent(class A,unsigned int32&)":                                          Locks,
		"System.Private.CoreLib!System.Threading.ReaderWriterLockSlim.ExitReadLock()":                                                                Inside,
		"System.Private.CoreLib!System.Threading.Monitor.Exit(class System.Object)":                                                                  Inside,
		"System.Private.CoreLib!System.Threading.ThreadPool.QueueUserWorkItem(class A)":                                                              Inside,
		"System.Private.CoreLib!System.Threading.Tasks.Task`1[System.__Canon].GetResultCore(bool)":                                                   Inside,
		"System.Net.Sockets!System.Net.Sockets.Socket.Receive(unsigned int8[])":                                                                      Library,
		"System.Private.CoreLib!Microsoft.Win32.SafeHandles.SafeFileHandle.Init()":                                                                   Inside,
		"System.Private.CoreLib!Microsoft.Win32.SafeHandles.SafeFileHandle+ThreadPoolValueTaskSource.System.Threading.IThreadPoolWorkItem.Execute()": Captured,
		"App!App.Program+<Work>d__12.SetStateMachine(class A)":                                                                                       Plain,
		"App!App.Job.System.Threading.IThreadPoolWorkItem.Execute()":                                                                                 Library,
		"System.Private.CoreLib!System.Threading.Thread.<PollGC>g__PollGCWorker|67_0()":                                                              Polls,
		"System.Private.CoreLib!Interop+Sys.Read(class A,unsigned int8*,int32)":                                                                      Talks,
		"System.Private.CoreLib!Interop+Kernel32.SetEvent(class A)":                                                                                  Inside,
		"libc!read":                                                         Plain,
		"App!App.Program+<Work>d__12.MoveNext()":                            Steps,
		"App!App.Program+<>c+<<Main>b__0_3>d.MoveNext()":                    Steps,
		"App!App.Program+<<Work>g__Rest|1_0>d`1[System.__Canon].MoveNext()": Steps,
		"App!App.Program+VB$StateMachine_3_Work.MoveNext()":                 Steps,
		"App!App.Program+work@114-1[System.__Canon].MoveNext()":             Steps,
		"App!App.List`1+Enumerator[App.Program+work@114-1].MoveNext()":      Plain,
		"System.Private.CoreLib!System.Runtime.CompilerServices.AsyncTaskMethodBuilder`1+AsyncStateMachineBox`1[System.__Canon,App.Program+<Work>d__12].MoveNext(class System.Threading.Thread)": Resumes,
		"System.Private.CoreLib!System.Runtime.CompilerServices.PoolingAsyncValueTaskMethodBuilder`1+StateMachineBox`1[System.Int32,App.Program+<Work>d__12].MoveNext()":                         Resumes,
		"App!App.List+Enumerator.MoveNext()": Plain,
		"System.Private.CoreLib!System.Threading.ThreadPool+<>c.<.cctor>b__52_0(class System.Object)": Follows,
		"System.Private.CoreLib!System.Threading.Tasks.Task.RunContinuations(class System.Object)":    Follows,
		"System.Private.CoreLib!System.Threading.Tasks.Task`1[System.__Canon].TrySetResult(!0)":       Follows,
		"System.Private.CoreLib!System.Threading.Tasks.TaskScheduler.TryRunInline(class A,bool)":      AtOnce,
		"System.Private.CoreLib!System.Threading.Tasks.Task.ExecuteWithThreadLocal(class A&,class B)": Inside,
	} {
		assert.Equal(t, want, RoleOf(name), name)
	}
}
