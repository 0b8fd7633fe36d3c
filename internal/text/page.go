package text

// MaxElement is about how many bytes of data stand in one element of a page. Browsers take in an
// element piece by piece, and copy at each one what they have of it: 400 MB in one element take
// them a minute.
const MaxElement = 1 << 20
