import { cutText } from '@/lib/protocol/cut-text';

/** Longer texts are no address. */
const LOOKED_AT = 2_000;
/** Endings of files and products that are no top-level domain. */
const NO_DOMAIN =
  /\.(?:js|jsx|ts|tsx|mjs|cjs|json|txt|toml|yml|yaml|html|css|scss|sql|java|cpp|lock|log|png|jpg|svg|pdf)$/i;
const DOTS = /[.。．｡]/;

/**
 * Where a link leads, if its text says that it leads elsewhere: it names another host, or hides its own one behind a user
 * name or behind letters that pass for others. The host as it is asked for, so in Punycode where it is international.
 *
 * @param target as `safeHref` returns it
 * @param text of the link, without markup
 * @returns null where the text is no address, or names the host that it leads to
 */
export function otherTarget(target: string, text: string): string | null {
  const url = new URL(target);
  const place = url.protocol === 'mailto:' ? decodeSafely(url.pathname) : url.host;
  if (url.username !== '' || url.password !== '') return place;
  const said = cutText(text, LOOKED_AT);
  const names = said.match(/[^\s"'“”‘’()<>[\]{},;!|\\]+/gu) ?? [];
  for (const name of names) {
    const host = hostIn(name);
    if (host === null) continue;
    if (url.protocol === 'mailto:') {
      if (name.replace(/^mailto:/i, '').toLowerCase() !== place.toLowerCase()) return place;
      continue;
    }
    if (decodeSafely(url.pathname).endsWith(`/${name}`)) continue;
    const isSame = url.hostname === host || url.hostname.endsWith(`.${host}`) || `www.${url.hostname}` === host;
    // What it says is where it leads, in letters that may pass for others.
    const isPlain = !host.includes('xn--') || name.includes(host);
    if (!isSame || !isPlain) return place;
  }
  return null;
}

/** The host that a word names, by an address or by itself; null if it names none. */
function hostIn(word: string): string | null {
  const hasScheme = /^[a-z][a-z\d+.-]*:\/\//i.test(word);
  const isMail = /^mailto:/i.test(word) || /^[^/@:]+@[^/@]+$/.test(word);
  const bare = hasScheme ? word.replace(/^[a-z][a-z\d+.-]*:/i, '') : `//${word.replace(/^mailto:/i, '')}`;
  // a sentence may end behind it
  const address = bare.replace(/[.:?…]+$/, '');
  if (!DOTS.test(address) && !hasScheme) return null;
  try {
    const { hostname } = new URL(`http:${address}`);
    const isDomain = /\.(?:\p{L}{2,}|xn--[a-z\d-]+)$/iu.test(hostname) || /^(?:\d+\.){3}\d+$/.test(hostname);
    if (!hasScheme && !isMail && (!isDomain || NO_DOMAIN.test(hostname))) return null;
    return hostname;
  } catch {
    return null;
  }
}

function decodeSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
