// The console's side of /api/v1: requests, names, and the stream of events.

const prefix = location.origin + "/api/v1";
const store = "bloomery-password";

// The reading password lasts as long as the tab. The one for a change is never kept.
let password = read();

function read() {
  try {
    return sessionStorage.getItem(store);
  } catch {
    return null; // storage is refused
  }
}

export function usePassword(given) {
  password = given;
  try {
    sessionStorage.setItem(store, given);
  } catch {
    // It lasts as long as the page.
  }
}

export class APIError extends Error {
  constructor(status, text, body) {
    super(text);
    this.status = status;
    this.body = body;
  }
}

function headers(as) {
  const sent = {};
  const given = as ?? password;
  if (given !== null && given !== undefined) {
    const bytes = new TextEncoder().encode(":" + given);
    sent.Authorization = "Basic " + btoa(String.fromCharCode(...bytes));
  }
  return sent;
}

// ask sends a request and returns what was answered. as is a password for this request.
export async function ask(method, path, body, as) {
  const sent = headers(as);
  const options = { method, headers: sent, cache: "no-store" };
  if (method !== "GET") {
    sent["Content-Type"] = "application/json";
    options.body = body === undefined ? "" : JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(prefix + path, options);
  } catch {
    throw new APIError(0, "the server does not answer");
  }
  return readAnswer(answer);
}

async function readAnswer(answer) {
  let value = {};
  try {
    value = await answer.json();
  } catch {
    // It was no JSON: the status says enough.
  }
  if (!answer.ok) throw new APIError(answer.status, value.error ?? answer.statusText, value);
  return value;
}

// A name is a string, or {base64} for bytes that are no text. idOf is a key for a Map and
// for the address; nameFrom undoes it.
export const idOf = (name) => (typeof name === "string" ? "=" + name : "~" + name.base64);
export const nameFrom = (id) => (id[0] === "~" ? { base64: id.slice(1) } : id.slice(1));

// shownName is a name as people read it. Bytes that are no text are written as \xff, and
// the prefix of another database as its number.
export function shownName(name) {
  if (typeof name === "string") {
    const other = /^\0([1-9a-f]):/.exec(name);
    const text = other ? name.slice(3) : name;
    const seen = text.replace(/[\p{Cc}\p{Cf}]/gu, (c) => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
    return (other ? `[${parseInt(other[1], 16)}] ` : "") + (seen === "" ? '""' : seen);
  }
  return [...atob(name.base64)].map((c) => (c >= " " && c <= "~" && c !== "\\" ? c : "\\x" + c.charCodeAt(0).toString(16).padStart(2, "0"))).join("");
}

// escaped is a name in a path or a query.
function escaped(name) {
  if (typeof name === "string") return encodeURIComponent(name);
  return [...atob(name.base64)].map((c) => "%" + c.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}

// pathOf is the path of a filter, with more after it. Browsers resolve one or two dots.
export function pathOf(name, more = "", query = "") {
  if (name === "." || name === "..") return `/filters/${btoa(name).replace(/=+$/, "")}${more}?base64=1${query && "&" + query}`;
  return `/filters/${escaped(name)}${more}${query && "?" + query}`;
}

// mostBytes keeps the address of a stream shorter than the server takes.
const mostBytes = 30_000;
export const mostShown = 90;

// watch opens a stream of events that shows filters, and returns a function to close it.
// onEvent gets each event; onState gets "open", or "lost" with an error before each new
// attempt. While nobody sees the page there is no stream.
export function watch(names, onEvent, onState) {
  let query = "";
  for (const name of names.slice(0, mostShown)) {
    const more = "&filter=" + escaped(name);
    if (query.length + more.length < mostBytes) query += more;
  }
  let ended = false;
  let control = new AbortController();
  const run = async () => {
    for (let wait = 500; !ended; ) {
      if (document.hidden) {
        await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
        continue;
      }
      control = new AbortController();
      try {
        const answer = await fetch(prefix + "/events" + (query && "?" + query.slice(1)), { headers: headers(), signal: control.signal, cache: "no-store" });
        if (!answer.ok) await readAnswer(answer);
        onState("open");
        wait = 500;
        await readEvents(answer.body, onEvent);
        if (!ended) throw new APIError(0, "the server has closed the stream");
      } catch (error) {
        if (ended || document.hidden) continue;
        onState("lost", error);
        if (error.status === 401) return;
        await new Promise((resolve) => setTimeout(resolve, wait));
        wait = Math.min(2 * wait, 10_000);
      }
    }
  };
  const hide = () => document.hidden && control.abort();
  document.addEventListener("visibilitychange", hide);
  run();
  return () => {
    ended = true;
    document.removeEventListener("visibilitychange", hide);
    control.abort();
  };
}

async function readEvents(body, onEvent) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ; ) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const line = text.slice(0, end);
      text = text.slice(end + 2);
      if (line.startsWith("data: ")) onEvent(JSON.parse(line.slice(6)));
    }
  }
}
