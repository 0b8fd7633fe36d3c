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

// A Browser is a page of a Chromium without a window that a test drives, over the pipe of its DevTools
// protocol, with storage of its own and no network but what the page asks for.
type Browser struct {
	t       testing.TB
	program *program
	session string
}

// A program is a running Chromium; one test at a time drives it.
type program struct {
	in      io.WriteCloser
	back    io.Closer
	cmd     *exec.Cmd
	answers chan answer
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

// kept is the Chromium that all tests of a package share, within KeepBrowser, once one of them has asked for it.
var kept struct {
	program *program
	dir     string // where it keeps its files; "" outside of KeepBrowser
}

// KeepBrowser runs the tests of a package whose browsers, one after the other, are pages of one Chromium: to start
// one takes more processor time than most pages do. Its result is the program's exit status.
func KeepBrowser(m *testing.M) int {
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	kept.dir = dir
	status := m.Run()
	if kept.program != nil {
		kept.program.end()
	}
	return status
}

// NewBrowser opens a page, for as long as the test runs, in a Chromium that is started for it or that KeepBrowser
// keeps. Without one the test is skipped.
func NewBrowser(t testing.TB, width, height int) *Browser {
	t.Helper()
	path := BrowserPath(t)
	p := kept.program
	if p == nil {
		dir := kept.dir
		if dir == "" {
			dir = t.TempDir()
		}
		var err error
		if p, err = startBrowser(path, filepath.Join(dir, "browser")); err != nil {
			if os.Getenv(browserEnv) != "" {
				t.Fatalf("%s does not start: %v", path, err)
			}
			t.Skipf("the browser does not start: %v", err)
		}
		if kept.dir != "" {
			kept.program = p
		} else {
			t.Cleanup(p.end)
		}
	}
	b := &Browser{t: t, program: p}
	var own struct{ BrowserContextID string }
	b.call("Target.createBrowserContext", map[string]any{}, &own)
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": own.BrowserContextID, "width": width, "height": height}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	t.Cleanup(func() {
		b.session = ""
		b.call("Target.disposeBrowserContext", map[string]any{"browserContextId": own.BrowserContextID}, nil)
	})
	b.Show(width, height, false)
	return b
}

// startBrowser starts a Chromium that keeps its files in dir.
func startBrowser(path, dir string) (*program, error) {
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	back, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	defer out.Close()
	cmd := exec.Command(path,
		"--headless", "--no-sandbox", "--disable-gpu", "--use-gl=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+dir, "about:blank")
	cmd.ExtraFiles = []*os.File{theirs, out}
	if err := cmd.Start(); err != nil {
		ours.Close()
		back.Close()
		return nil, err
	}
	p := &program{in: ours, back: back, cmd: cmd, answers: make(chan answer, 64)}
	go p.listen(back)
	return p, nil
}

// end ends the browser.
func (p *program) end() {
	p.in.Close() // it ends with its pipe
	done := make(chan struct{})
	go func() { _ = p.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-done
	}
	p.back.Close()
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

// Paper shows the page as it is printed.
func (b *Browser) Paper() {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil)
	b.Eval(`dispatchEvent(new Event("beforeprint"))`, nil)
}

// listen passes on the answers; events are not asked for.
func (p *program) listen(r io.Reader) {
	defer close(p.answers)
	for in := bufio.NewReaderSize(r, 1<<16); ; {
		line, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(line[:len(line)-1], &a) == nil && a.ID > 0 {
			p.answers <- a
		}
	}
}

// call calls a method of the protocol, and reads its result into out unless that is nil.
func (b *Browser) call(method string, params map[string]any, out any) {
	b.t.Helper()
	p := b.program
	p.last++
	m := map[string]any{"id": p.last, "method": method, "params": params}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err == nil {
		_, err = p.in.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for late := time.After(patience); ; {
		select {
		case a, ok := <-p.answers:
			switch {
			case !ok:
				b.t.Fatalf("%s: the browser ended", method)
			case a.ID != p.last:
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
