import type { Token, Tokens } from 'marked';
import type { ReactNode } from 'react';
import { withBreaks } from '../line-breaks';
import { decodeEntities } from '../plain-text';
import { proseText } from '../prose';
import { bracketed, nameText } from '../verbatim';

/** Deeper nesting is shown as written. */
const DEEPEST = 16;

/** Inline tokens as elements. Nothing here can produce HTML: unknown tokens are shown as text. */
export function renderInline(tokens: readonly Token[] | undefined, depth = 0, inLink = false): ReactNode {
  return tokens?.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: tokens have no other identity
    <Inline key={index} token={token} depth={depth} inLink={inLink} />
  ));
}

/** The text without its markup. */
function plainText(tokens: readonly Token[] | undefined): string {
  const texts = tokens?.map((token) =>
    'tokens' in token && token.tokens ? plainText(token.tokens) : 'text' in token ? String(token.text) : token.raw,
  );
  return decodeEntities(texts?.join('') ?? '');
}

function Inline({ token, depth, inLink }: { token: Token; depth: number; inLink: boolean }): ReactNode {
  if (depth > DEEPEST) return withBreaks(token.raw);
  const isLink = token.type === 'link';
  const inner = () => renderInline((token as Tokens.Strong).tokens, depth + 1, inLink || isLink);
  switch (token.type) {
    case 'strong':
      return <strong className="font-semibold text-ink">{inner()}</strong>;
    case 'em':
      return <em>{inner()}</em>;
    case 'del':
      return <del className="text-ink-3">{inner()}</del>;
    case 'codespan':
      return (
        <code dir="ltr" className="rounded-[3px] bg-raised px-1 py-px text-[0.9em] [overflow-wrap:anywhere]">
          {withBreaks(token.text)}
        </code>
      );
    case 'br':
      return <br />;
    case 'escape':
      return token.text;
    // HTML doesn't allow nested links: the browser would split them and break hydration.
    case 'link':
      if (inLink) return inner();
      return (
        <Link href={token.href} text={plainText(token.tokens)}>
          {inner()}
        </Link>
      );
    // Images become links, because loading one would contact a server of the agent's choice.
    case 'image': {
      const name = token.text === '' ? 'image' : `image: ${token.text}`;
      if (inLink) return withBreaks(name);
      return (
        <Link href={token.href} text={token.text}>
          {withBreaks(name)}
        </Link>
      );
    }
    case 'text':
      // Entities become text only here.
      return 'tokens' in token && token.tokens ? inner() : withBreaks(proseText(decodeEntities(token.text)));
    case 'checkbox':
      return null;
    default:
      return withBreaks(token.raw);
  }
}

/**
 * The agent chose the text, so the tooltip shows the target. If the text names another host, the target's host is
 * appended.
 */
function Link({ href, text, children }: { href: string; text: string; children: ReactNode }): ReactNode {
  const safe = safeHref(href);
  // Shown as text, so that the reader sees the target.
  if (safe === null) return <span title={nameText(href)}>{children}</span>;
  const target = otherTarget(safe, text);
  return (
    <a
      href={safe}
      title={nameText(safe)}
      target="_blank"
      rel="noopener noreferrer nofollow"
      className="underline decoration-line-strong underline-offset-2 [overflow-wrap:anywhere] hover:decoration-current"
    >
      {children}
      {target !== null && <span className="verbatim-sign">{bracketed(`opens ${nameText(target)}`)}</span>}
    </a>
  );
}

const ALLOWED = new Set(['http:', 'https:', 'mailto:']);

/**
 * A link in an agent's text, if it can only open a page or compose a mail. Relative links are refused: they mean files
 * of the agent's project, never our pages.
 */
export function safeHref(href: string): string | null {
  // Browsers drop control characters and white space while they parse a scheme ("java\nscript:"), so they go first.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: intended
  const cleaned = href.replace(/[\u0000-\u0020\u007f-\u009f]/g, '');
  if (!/^(?:https?:\/\/|mailto:)/i.test(cleaned)) return null;
  try {
    const url = new URL(cleaned);
    return ALLOWED.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

/** Readers don't recognize a longer text as an address, so its target is always shown. */
const MAX_CHARACTERS = 2_000;

/** Characters that look like punctuation of an address, besides those that NFKC maps to it. */
const LIKE_MARKS = [
  [/[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu, ''],
  [/[\u0660\u06f0\u0701\u0702\ua4f8\ua60e。·‧∙⋅・•]/gu, '.'],
  [/[⁄∕⧸⧵∖]/gu, '/'],
  [/[∶ː꞉։׃]/gu, ':'],
] as const;

const LABEL = String.raw`[\p{L}\p{N}\p{M}-]+`;
const ADDRESS = new RegExp(
  String.raw`(?<![\p{L}\p{N}\p{M}])(?:(?<scheme>[a-z][a-z\d+.-]+:[\\/]+)(?<user>[^\s\\/?#@]*@)?)?` +
    String.raw`(?<host>\[[\da-f:.]*:[\da-f:.]*\]|${LABEL}(?:\.${LABEL})*)` +
    String.raw`(?:(?<port>:\d+)?(?<path>[\\/?#][^\s"'“”‘’()<>[\]{},;!|]*)?)`,
  'giu',
);

/** Top-level domains that are not also file or code suffixes. */
const ORIGINAL = /^(?:com|net|org|edu|gov|mil)$/i;
/** Common generic domains, except names of properties and methods (`.name`, `.run`). */
const GENERIC =
  /^(?:info|biz|app|dev|cloud|xyz|online|site|website|shop|store|tech|blog|club|vip|bank|wiki|news|agency|world|space|digital|services|solutions|finance|money|exchange|market|academy|health|chat|studio|codes|software|technology|ltd|gmbh|asia|onion|example|invalid)$/i;
const COUNTRY =
  /^(?:a[c-gilmoq-uwxz]|b[abd-jmnorstvwyz]|c[acdf-ik-oru-z]|d[ejkmoz]|e[cegr-u]|f[ijkmor]|g[abd-ilmnp-uwy]|h[kmnrtu]|i[delmnoq-t]|j[emop]|k[eghimnprwyz]|l[abcikr-vy]|m[aceghn-z]|n[acefgilopruz]|om|p[ae-hklnrtw]|qa|r[eouw]|s[a-egijk-ortuvx-z]|t[cdghj-ortvwz]|u[agksyz]|v[aceginu]|w[fs]|y[et]|z[amw])$/i;
/** Country domains that are also file extensions (`main.py`). Only a path makes them hosts. */
const FILE_COUNTRY = /^(?:m[dklm]|p[msy]|rs|sh|tf)$/i;
/** Names before a dot in code. */
const CODE =
  /^(?:app|args|array|arr|config|console|ctx|data|date|document|el|element|env|event|fs|item|json|log|logger|map|math|node|number|obj|object|options|os|process|promise|props|req|res|row|self|set|state|std|string|sys|system|that|this|user|window)$/i;
const PRODUCT = /^(?:ado|asp|ml|vb)\.net$/i;

/**
 * The target of a link whose text claims another one: the text names another host, or hides the host behind a user
 * name, further recipients or lookalike letters. The host is in Punycode if it is international.
 *
 * The target's path proves nothing, because its author chose it.
 *
 * @param target as returned by `safeHref`
 * @param text of the link, without markup
 * @returns null if the text is not an address or names the target's host
 */
export function otherTarget(target: string, text: string): string | null {
  const url = new URL(target);
  const isMail = url.protocol === 'mailto:';
  const others = isMail ? [...url.searchParams].filter(([name, to]) => /^(?:to|b?cc)$/i.test(name) && to !== '') : [];
  const place = isMail ? [decodeSafely(url.pathname), ...others.map(([, to]) => to)].join(', ') || 'mail' : url.host;
  if (url.username !== '' || url.password !== '' || others.length > 0 || text.length > MAX_CHARACTERS) return place;
  let claimed = LIKE_MARKS.reduce((result, [like, mark]) => result.replace(like, mark), text.normalize('NFKC'));
  if (isMail && place.includes('@')) claimed = claimed.toLowerCase().replaceAll(place.toLowerCase(), ' ');
  ADDRESS.lastIndex = 0;
  for (let match = ADDRESS.exec(claimed); match !== null; match = ADDRESS.exec(claimed)) {
    const { scheme, user, host = '' } = match.groups ?? {};
    const before = claimed.slice(Math.max(0, match.index - 2), match.index);
    if (!isAddress(match.groups ?? {}, before)) {
      // The rest may contain an address.
      ADDRESS.lastIndex = match.index + (scheme ?? '').length + (user ?? '').length + host.length;
      continue;
    }
    const hostname = hostnameOf(host);
    const isSame =
      url.hostname === hostname || url.hostname.endsWith(`.${hostname}`) || `www.${url.hostname}` === hostname;
    // The right host, but in lookalike letters.
    const isPlain = !hostname?.includes('xn--') || host.toLowerCase().includes(hostname);
    if (isMail || user !== undefined || !isSame || !isPlain) return place;
  }
  return null;
}

/**
 * True if a reader would take the match for an address rather than code, a file or the end of a sentence.
 *
 * @param before the two characters before it
 */
function isAddress(match: Record<string, string | undefined>, before: string): boolean {
  const { scheme, host = '', port, path } = match;
  if (scheme !== undefined || host.startsWith('[')) return true;
  // Part of a path.
  if (/[\p{L}\p{N}._~:-][\\/]$/u.test(before)) return false;
  if (/^localhost$/i.test(host)) return port !== undefined || path !== undefined;
  const labels = host.split('.');
  const ending = labels.pop() ?? '';
  const name = labels.at(-1);
  if (name === undefined) return false;
  if (before.endsWith('@') || /^www$/i.test(labels[0] ?? '') || /^(?:\d{1,3}\.){3}\d{1,3}$/.test(host)) return true;
  if (/^xn--|[^\0-\x7f]/i.test(ending)) return /^(?:xn--[a-z\d-]+|\p{L}{2,})$/iu.test(ending);
  // `System.IO`, `Done.It`
  const isCode = /[A-Z]/.test(ending) && host !== host.toUpperCase();
  if (ORIGINAL.test(ending)) return !PRODUCT.test(host) && !(isCode && ending === 'NET');
  if (FILE_COUNTRY.test(ending)) return path?.[0] === '/' && path.length > 1;
  return !isCode && !CODE.test(name) && (GENERIC.test(ending) || COUNTRY.test(ending));
}

/** The host as browsers request it; null if it is invalid. */
function hostnameOf(host: string): string | null {
  try {
    return new URL(`http://${host}`).hostname;
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
