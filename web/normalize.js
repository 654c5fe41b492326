// The normal forms of keys: what bloomery build --normalize converts lines to, and then
// records in the metadata under "normalize". The forms work on bytes and change only ASCII
// letters; they are frozen, because the keys in files depend on them.

const code = (character) => character.charCodeAt(0);
const lower = (c) => (c >= 0x41 && c <= 0x5a ? c + 0x20 : c);
const upper = (c) => (c >= 0x61 && c <= 0x7a ? c - 0x20 : c);
const isBlank = (c) => c === 0x20 || (c >= 9 && c <= 13);
const isDigit = (c) => c >= 0x30 && c <= 0x39;
const isLetter = (c) => lower(c) >= 0x61 && lower(c) <= 0x7a;
const isHexDigit = (c) => isDigit(c) || (lower(c) >= 0x61 && lower(c) <= 0x66);
const unhex = (c) => (isDigit(c) ? c - 0x30 : lower(c) - 0x61 + 10);
const isUnreserved = (c) => isDigit(c) || isLetter(c) || '-._~'.includes(String.fromCharCode(c));

function trim(line) {
  let from = 0, to = line.length;
  while (from < to && isBlank(line[from])) {
    from++;
  }
  while (to > from && isBlank(line[to - 1])) {
    to--;
  }
  return line.subarray(from, to);
}

function hex(line) {
  const digits = [];
  const from = line.length >= 2 && line[0] === 0x30 && lower(line[1]) === code('x') ? 2 : 0;
  for (const c of line.subarray(from)) {
    if (isHexDigit(c)) {
      digits.push(lower(c));
    } else if (c !== code(':') && c !== code('-') && !isBlank(c)) {
      return line;
    }
  }
  return digits.length === 0 ? line : Uint8Array.from(digits);
}

// URLs are handled as strings with a character for each byte.
const toText = (bytes) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
const toBytes = (text) => Uint8Array.from(text, code);
const lowerText = (text) => text.replace(/[A-Z]/g, (c) => c.toLowerCase());

const defaultPorts = { http: '80', https: '443', ftp: '21', ws: '80', wss: '443' };

// url is RFC 3986, sections 6.2.2 and 6.2.3, without the fragment. Lines without scheme://
// stay as they are.
function url(line) {
  const text = toText(line), colon = text.indexOf('://');
  if (colon < 0 || !/^[A-Za-z][A-Za-z0-9+.-]*$/.test(text.slice(0, colon))) {
    return line;
  }
  const scheme = lowerText(text.slice(0, colon));
  const rest = text.slice(colon + 3).split('#', 1)[0];
  const end = rest.search(/[/?]/);
  const authority = end < 0 ? rest : rest.slice(0, end);
  const after = rest.slice(authority.length), mark = after.indexOf('?');
  const path = mark < 0 ? after : after.slice(0, mark);
  const query = mark < 0 ? '' : '?' + encoded(after.slice(mark + 1));
  const port = Object.hasOwn(defaultPorts, scheme) ? defaultPorts[scheme] : '';
  return toBytes(scheme + '://' + normalAuthority(authority, port) + normalPath(path) + query);
}

function normalAuthority(authority, defaultPort) {
  const at = authority.lastIndexOf('@');
  const user = at < 0 ? '' : encoded(authority.slice(0, at)) + '@';
  const [host, port] = splitPort(authority.slice(at + 1));
  const lowered = encoded(host).replace(/%[0-9A-Fa-f]{2}|[A-Z]/g, (part) => (part.length === 3 ? part : part.toLowerCase()));
  return user + lowered + (port !== '' && port !== defaultPort ? ':' + port : '');
}

function splitPort(authority) {
  const colon = authority.lastIndexOf(':');
  if (colon < 0 || !/^[0-9]*$/.test(authority.slice(colon + 1))) {
    return [authority, ''];
  }
  const host = authority.slice(0, colon);
  if (host.includes(':') && (host[0] !== '[' || host[colon - 1] !== ']')) {
    return [authority, ''];
  }
  return [host, authority.slice(colon + 1)];
}

function normalPath(path) {
  if (path === '') {
    return '/';
  }
  let made = '';
  const segments = encoded(path).slice(1).split('/');
  segments.forEach((segment, i) => {
    if (segment !== '.' && segment !== '..') {
      made += '/' + segment;
      return;
    }
    if (segment === '..' && made.includes('/')) {
      made = made.slice(0, made.lastIndexOf('/'));
    }
    if (i === segments.length - 1) {
      made += '/';
    }
  });
  return made;
}

// encoded decodes what needs no percent-encoding, and gives the rest upper-case digits.
// A part with a "%" that begins no triplet is unchanged.
function encoded(text) {
  if (/%(?![0-9A-Fa-f]{2})/.test(text.replace(/%[0-9A-Fa-f]{2}/g, '_'))) {
    return text;
  }
  return text.replace(/%([0-9A-Fa-f])([0-9A-Fa-f])/g, (triplet, high, low) => {
    const c = (unhex(code(high)) << 4) | unhex(code(low));
    return isUnreserved(c) ? String.fromCharCode(c) : triplet.toUpperCase();
  });
}

const forms = { lower: (line) => line.map(lower), upper: (line) => line.map(upper), trim, hex, url };

// normalizer returns the function that applies normal forms, such as "trim,url", to the
// bytes of a key. It throws for a form that it does not know.
export function normalizer(names) {
  const steps = names === '' ? [] : names.split(',').map((name) => {
    if (!Object.hasOwn(forms, name)) {
      throw new RangeError(`the normal form "${name}" is unknown`);
    }
    return forms[name];
  });
  return (key) => steps.reduce((form, step) => step(form), key);
}
