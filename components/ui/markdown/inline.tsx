import type { Token, Tokens } from 'marked';
import type { ReactNode } from 'react';
import { decodeEntities } from '../entities';
import { proseText } from '../prose';
import { bracketed, nameText } from '../verbatim';
import { withBreaks } from '../with-breaks';
import { otherTarget } from './other-target';

/** Nesting beyond this is shown as it was written. */
const DEEPEST = 16;

/** Inline tokens as elements. There is no way from here to HTML: what is not listed is shown as the text it is. */
export function renderInline(tokens: readonly Token[] | undefined, depth = 0, inLink = false): ReactNode {
  return tokens?.map((token, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: tokens of a text have no other identity
    <Inline key={at} token={token} depth={depth} inLink={inLink} />
  ));
}

/** The text of tokens without their markup. */
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
    // A link within a link is none in HTML: the browser would take them apart, and React not find its own again.
    case 'link':
      if (inLink) return inner();
      return (
        <Link href={token.href} text={plainText(token.tokens)}>
          {inner()}
        </Link>
      );
    // A picture would be fetched from wherever the agent says: it is a link that the reader may follow.
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
      // what an entity stands for is in the text only now
      return 'tokens' in token && token.tokens ? inner() : withBreaks(proseText(decodeEntities(token.text)));
    case 'checkbox':
      return null;
    default:
      return withBreaks(token.raw);
  }
}

/**
 * The agent chose the text, so the tooltip shows the target; if the text names another host, the target's host is
 * appended.
 */
function Link({ href, text, children }: { href: string; text: string; children: ReactNode }): ReactNode {
  const safe = safeHref(href);
  // Said as text, so that the reader sees where it would have led.
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
 * A link an agent wrote, if following it can do no more than open a page or a mail. Relative links are refused too:
 * in an agent's text they mean a file of its project, never a page of ours.
 */
export function safeHref(href: string): string | null {
  // Browsers drop control characters and white space while they parse a scheme ("java\nscript:"), so they go first.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is the point
  const cleaned = href.replace(/[\u0000-\u0020\u007f-\u009f]/g, '');
  if (!/^(?:https?:\/\/|mailto:)/i.test(cleaned)) return null;
  try {
    const url = new URL(cleaned);
    return ALLOWED.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
