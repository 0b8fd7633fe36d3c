package tracetest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A Browser is a Chromium without a window that a test drives, over the pipe of its DevTools
// protocol: one page, no network but what the page asks for.
type Browser struct {
	t       testing.TB
	in      io.Writer
	answers chan answer
	session string
	last    int
}

type answer struct {
	ID     int
	Result json.RawMessage
	Error  *struct{ Message string }
}

// patience is how long a page may take for one thing.
const patience = 60 * time.Second

// BrowserPath finds the browser: the program that TRACEFIX_BROWSER names, else a Chromium or Chrome on
// the PATH or where its installer puts it. Without one the test is skipped.
func BrowserPath(t testing.TB) string {
	t.Helper()
	if name := os.Getenv(browserEnv); name != "" {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("%s: %v", browserEnv, err)
		}
		return path
	}
	for _, name := range []string{
		"chromium", "chromium-browser", "google-chrome", "chrome",
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome", `C:\Program Files\Google\Chrome\Application\chrome.exe`,
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no chromium on the PATH, and " + browserEnv + " names none: the page was not opened in a browser")
	return ""
}

// browserEnv names the browser. Where it is set a test must not skip.
const browserEnv = "TRACEFIX_BROWSER"

// NewBrowser starts the browser, for as long as the test runs. Without one the test is skipped.
func NewBrowser(t testing.TB, width, height int, flags ...string) *Browser {
	t.Helper()
	path := BrowserPath(t)
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	back, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(path, append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--use-gl=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir=" + filepath.Join(dir, "browser"), fmt.Sprintf("--window-size=%d,%d", width, height), "about:blank",
	}, flags...)...)
	cmd.ExtraFiles = []*os.File{theirs, out}
	if err := cmd.Start(); err != nil {
		if os.Getenv(browserEnv) != "" {
			t.Fatalf("%s does not start: %v", path, err)
		}
		t.Skipf("the browser does not start: %v", err)
	}
	theirs.Close()
	out.Close()
	b := &Browser{t: t, in: ours, answers: make(chan answer, 64)}
	go b.listen(back)
	t.Cleanup(func() {
		ours.Close() // it ends with its pipe
		done := make(chan struct{})
		go func() { _ = cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
		back.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	b.Show(width, height, false)
	return b
}

// Show gives the page a size in pixels, and light or dark colours.
func (b *Browser) Show(width, height int, dark bool) {
	b.t.Helper()
	theme := "light"
	if dark {
		theme = "dark"
	}
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": theme}}}, nil)
}

// listen passes on the answers; events are not asked for.
func (b *Browser) listen(r io.Reader) {
	defer close(b.answers)
	for in := bufio.NewReaderSize(r, 1<<16); ; {
		line, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(line[:len(line)-1], &a) == nil && a.ID > 0 {
			b.answers <- a
		}
	}
}

// call calls a method of the protocol, and reads its result into out unless that is nil.
func (b *Browser) call(method string, params map[string]any, out any) {
	b.t.Helper()
	b.last++
	m := map[string]any{"id": b.last, "method": method, "params": params}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for late := time.After(patience); ; {
		select {
		case a, ok := <-b.answers:
			switch {
			case !ok:
				b.t.Fatalf("%s: the browser ended", method)
			case a.ID != b.last:
				continue
			case a.Error != nil:
				b.t.Fatalf("%s: %s", method, a.Error.Message)
			case out != nil:
				if err := json.Unmarshal(a.Result, out); err != nil {
					b.t.Fatalf("%s: %v", method, err)
				}
			}
			return
		case <-late:
			b.t.Fatalf("%s: no answer", method)
		}
	}
}

// Open opens an address and waits until ready, a JavaScript expression, holds.
func (b *Browser) Open(address, ready string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": address}, nil)
	b.Wait(ready)
}

// Before has every page run a script before its own.
func (b *Browser) Before(script string) {
	b.t.Helper()
	b.call("Page.enable", map[string]any{}, nil)
	b.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": script}, nil)
}

// Wait waits until a JavaScript expression holds.
func (b *Browser) Wait(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		b.eval("(() => { try { return !!("+expression+") } catch { return false } })()", &ok)
		if ok {
			return
		}
	}
	b.Screenshot("never")
	b.t.Fatalf("the page never came to %s", expression)
}

// Eval reads the value of a JavaScript expression, or what its promise gives, into out.
func (b *Browser) Eval(expression string, out any) {
	b.t.Helper()
	b.eval(expression, out)
}

func (b *Browser) eval(expression string, out any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r)
	if e := r.ExceptionDetails; e != nil {
		b.t.Fatalf("%s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if out != nil && r.Result.Value != nil {
		if err := json.Unmarshal(r.Result.Value, out); err != nil {
			b.t.Fatalf("%s: %v", expression, err)
		}
	}
}

// Drag presses the mouse at one place and lets it go at another.
func (b *Browser) Drag(x0, y0, x1, y1 float64) {
	b.t.Helper()
	mouse := func(kind string, x, y float64, buttons int) {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1}, nil)
	}
	mouse("mouseMoved", x0, y0, 0)
	mouse("mousePressed", x0, y0, 1)
	if x0 != x1 || y0 != y1 {
		mouse("mouseMoved", (x0+x1)/2, (y0+y1)/2, 1)
		mouse("mouseMoved", x1, y1, 1)
	}
	mouse("mouseReleased", x1, y1, 0)
}

// Click presses and lets go the mouse at a place.
func (b *Browser) Click(x, y float64) {
	b.t.Helper()
	b.Drag(x, y, x, y)
}

// Key presses a key: one character, or a name such as Enter.
func (b *Browser) Key(key string) {
	b.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key}
	if len(key) == 1 {
		down["text"] = key
	}
	b.call("Input.dispatchKeyEvent", down, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// Accessible returns what assistive software is told of the page: names by role.
func (b *Browser) Accessible() map[string][]string {
	b.t.Helper()
	var tree struct {
		Nodes []struct {
			Ignored    bool
			Role, Name struct{ Value any }
		}
	}
	b.call("Accessibility.getFullAXTree", map[string]any{}, &tree)
	names := map[string][]string{}
	for _, n := range tree.Nodes {
		if role, ok := n.Role.Value.(string); ok && !n.Ignored {
			name, _ := n.Name.Value.(string)
			names[role] = append(names[role], name)
		}
	}
	return names
}

// Busy returns for how many milliseconds of processor time the page's thread has worked since it was first
// asked, whatever else the machine does.
func (b *Browser) Busy() float64 {
	b.t.Helper()
	b.call("Performance.enable", map[string]any{"timeDomain": "threadTicks"}, nil)
	var told struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	b.call("Performance.getMetrics", nil, &told)
	for _, m := range told.Metrics {
		if m.Name == "TaskDuration" {
			return 1000 * m.Value
		}
	}
	b.t.Fatal("the browser does not tell for how long the page worked")
	return 0
}

// Memory returns the bytes that the page's program holds: its heap and its arrays of numbers.
func (b *Browser) Memory() int64 {
	b.t.Helper()
	b.call("HeapProfiler.collectGarbage", nil, nil)
	var use struct{ UsedSize, BackingStorageSize float64 }
	b.call("Runtime.getHeapUsage", nil, &use)
	return int64(use.UsedSize + use.BackingStorageSize)
}

// Screenshot writes a picture of the page to a file in the folder that TRACEFIX_SCREENSHOTS
// names, if it does.
func (b *Browser) Screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("TRACEFIX_SCREENSHOTS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b.Picture(), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// Picture returns a PNG of what the page shows.
func (b *Browser) Picture() []byte {
	b.t.Helper()
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	return png
}
