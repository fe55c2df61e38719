import type { Token, Tokens } from 'marked';
import type { ReactNode } from 'react';
import { withBreaks } from '../line-breaks';
import { decodeEntities } from '../plain-text';
import { proseText } from '../prose';
import { bracketed, nameText } from '../verbatim';
import { otherTarget } from './other-target';

/** Deeper nesting is shown as written. */
const DEEPEST = 16;

/** Inline tokens as elements. Nothing here can produce HTML: unknown tokens are shown as text. */
export function renderInline(tokens: readonly Token[] | undefined, depth = 0, inLink = false): ReactNode {
  return tokens?.map((token, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: tokens have no other identity
    <Inline key={at} token={token} depth={depth} inLink={inLink} />
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
