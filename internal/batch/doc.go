// Package batch takes many traces through one function, one goroutine per trace,
// under one memory budget: it finds them in folders, globs, lists, archives and
// buckets, keeps what is done in a journal so that a killed run can go on, and tells
// the outcome in reports that are the same for any number of workers.
//
// Data flows one way: walk (what is there, in input order) -> pool (what is made of
// it, in any order) -> Report (in input order again) -> its writers and gates.
package batch
