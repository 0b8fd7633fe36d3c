// Package stackfix restores the root-side frames of call stacks that a recorder
// cut off. It is a pure algorithm on stack ids; it knows no file format.
package stackfix
