module github.com/tracefix/tracefix

go 1.26
