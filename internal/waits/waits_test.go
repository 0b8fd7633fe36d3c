package waits

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOf(t *testing.T) {
	for name, want := range map[string]Kind{
		"Monitor.Wait":                               Wait,
		"Monitor.TryEnter_Slowpath":                  Lock,
		"Monitor.Exit":                               Near,
		"Lock.EnterAndGetCurrentThreadId":            Lock,
		"Lock.Exit":                                  Near,
		"LockFreeQueue.Enter":                        None,
		"ReaderWriterLockSlim.WaitOnEvent":           Lock,
		"ReaderWriterLockSlim.ExitReadLock":          Near,
		"ReaderWriterLockSlim+SpinLock.Enter":        Near, // it spins
		"WaitHandle.WaitOneNoCheck":                  Wait,
		"WaitHandle.Dispose":                         Near,
		"LowLevelLifoSemaphore.WaitForSignal":        Park,
		"LowLevelLifoSemaphore.Release":              Near,
		"LowLevelSpinWaiter.Wait":                    None, // it spins
		"SpinWait.SpinUntil":                         Spin,
		"Thread.SleepInternal":                       Sleep,
		"Thread.JoinInternal":                        Wait,
		"Thread.StartCallback":                       None,
		"SemaphoreSlim.WaitCore":                     Wait,
		"SemaphoreSlim.WaitAsync":                    None,
		"SemaphoreSlim.WaitAsyncCore":                None,
		"SemaphoreSlim.Release":                      None,
		"Tasks.Task.WaitAllBlockingCore":             Wait,
		"Tasks.Task.InternalWaitCore":                Wait,
		"Tasks.Task.WaitAsync":                       None,
		"Tasks.Task.RunContinuations":                None,
		"ManualResetEventSlim.Set":                   None,
		"SemaphoreSlim.WaitUntilCountOrTimeout":      Wait,
		"SemaphoreSlim.WaitUntilCountOrTimeoutAsync": None,
	} {
		assert.Equal(t, want, Of("System.Threading."+name), name)
	}
	for name, want := range map[string]Kind{
		"System.GC.WaitForPendingFinalizers":  Wait,
		"System.GC._WaitForPendingFinalizers": Wait,
		"System.GC.WaitForFullGCComplete":     Wait,
		"System.GC.Collect":                   None, // it collects
		"System.GC._Collect":                  None,
		"System.Monitor.Wait":                 None,
		"App.Monitor.Wait":                    None,
		"System.GCSettings.WaitForIt":         None,
	} {
		assert.Equal(t, want, Of(name), name)
	}
}
