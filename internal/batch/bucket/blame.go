package bucket

import "fmt"

// What can be wrong with a store is its name, a permission, the network, or the store itself. Each
// message says which it was and what to do.

func noBucket(bucket, store, hint string, err error) error {
	return fmt.Errorf("there is no bucket %s at %s; check the name%s: %w", bucket, store, hint, err)
}

func refused(bucket, store, keys string, err error) error {
	return fmt.Errorf("the store at %s refuses access to bucket %s with %s: %w", store, bucket, keys, err)
}

func expired(bucket, store, keys string, err error) error {
	return fmt.Errorf("the store at %s refuses access to bucket %s: %s have expired; get new ones and run it again: %w", store, bucket, keys, err)
}

func inTrouble(store string, status int, err error) error {
	return fmt.Errorf("the store at %s is in trouble (status %d) and was asked %d times; run it again later: %w", store, status, tries, err)
}

func unreachable(store string, err error) error {
	return fmt.Errorf("the store at %s cannot be reached; check the network and the endpoint: %w", store, err)
}
