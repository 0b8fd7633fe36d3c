// Package httpreport writes HTTP requests and activities: requests as table, JSON, HAR,
// Chromium trace events, OTLP and HTML, activities as the tree of their starts and stops.
//
// A Service sums requests up with what the runtime tells of itself: rates, durations, errors
// and connections by route, host, status and time, and what is wrong: a starved thread pool, a
// convoy at a lock, an exhausted pool of connections, slow name resolution or handshakes.
package httpreport
