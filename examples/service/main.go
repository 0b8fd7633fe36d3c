// Command service repairs traces that are uploaded to it: curl --data-binary @app.nettrace
// localhost:8080 -o app.speedscope.json
package main

import (
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/tracefix/tracefix"
)

// largest is how many bytes an upload may have.
const largest = 1 << 30

func main() {
	log.Fatal(http.ListenAndServe("localhost:8080", http.HandlerFunc(repair)))
}

// repair answers with the repaired trace as speedscope. Requests share nothing, so any number of
// them may run at once; one whose client goes away ends its reading.
func repair(w http.ResponseWriter, r *http.Request) {
	f, err := tracefix.NewFile("upload", http.MaxBytesReader(w, r.Body, largest))
	if err != nil {
		fail(w, err)
		return
	}
	defer f.Close() // removes the copy of the upload
	p, err := f.Profile(r.Context(), &tracefix.ReadOptions{Evidence: true})
	if err != nil {
		fail(w, err)
		return
	}
	if err := tracefix.RepairContext(r.Context(), p, nil); err != nil {
		return // who asked is gone
	}
	p.DropEvidence()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Damages", fmt.Sprint(p.Meta.Damages)) // what is whole of a damaged file is there
	if err := tracefix.Write(w, p, "speedscope", nil); err != nil {
		log.Print(err)
		panic(http.ErrAbortHandler) // the answer has begun: nobody takes it for whole
	}
}

// fail tells what the upload is to blame for from what is our own.
func fail(w http.ResponseWriter, err error) {
	var content *tracefix.FormatError
	var size *http.MaxBytesError
	switch {
	case errors.As(err, &content):
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
	case errors.As(err, &size):
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	default:
		log.Print(err)
		http.Error(w, "it did not work", http.StatusInternalServerError)
	}
}
