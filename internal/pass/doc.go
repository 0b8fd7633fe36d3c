// Package pass holds what rewrites a profile between its reader and its writer: stacks that
// the recorder cut get their missing frames (stackfix.go; task_depths.go where events of the
// task library tell how many), and stacks become those of who awaits whom (logical.go).
package pass
