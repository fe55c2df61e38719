import { clsx } from 'clsx';
import { Fragment } from 'react';
import { needsBreaks, withBreaks } from '@/components/ui/line-breaks';
import { ELEMENTS_FOLDED, ELEMENTS_UNFOLDED, type MessagePiece, messagePieces } from './message-pieces';

export function MessageText(props: {
  message: string;
  hits: readonly (readonly [number, number])[];
  isUnfolded: boolean;
}) {
  const pieces = messagePieces(props.message, props.hits, props.isUnfolded ? ELEMENTS_UNFOLDED : ELEMENTS_FOLDED);
  const breaks = needsBreaks(props.message);
  if (pieces.length === 1 && pieces[0] && isPlain(pieces[0])) return withBreaks(pieces[0].text, breaks);
  return pieces.map((piece, index) => {
    const { text, className, isControl, isHit } = piece;
    // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no other identity
    if (isPlain(piece)) return breaks ? <Fragment key={index}>{withBreaks(text, true)}</Fragment> : text;
    if (isHit) {
      return (
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no other identity
        <mark key={index} className={clsx('log-hit', className)}>
          {withBreaks(text, breaks)}
        </mark>
      );
    }
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: see above
      <span key={index} className={isControl ? 'text-ink-3' : (className ?? undefined)}>
        {isControl ? <ControlCharacters text={text} /> : withBreaks(text, breaks)}
      </span>
    );
  });
}

function isPlain({ className, isControl, isHit }: MessagePiece): boolean {
  return className === null && !isControl && !isHit;
}

/** Names of the control pictures U+2400 to U+2421, for fonts without them. */
const NAMES = (
  'NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US ' +
  'SP DEL'
).split(' ');

/** Longer runs are plain characters. */
const MAX_SIGNS = 200;

/** Control characters by name (`ESC`), followed by the rest of the escape. */
function ControlCharacters({ text }: { text: string }) {
  if (text.length > MAX_SIGNS) return text;
  return [...text].map((character, index) => {
    const name = NAMES[character.charCodeAt(0) - 0x2400];
    if (name === undefined) return character;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: characters have no other identity
      <span key={index} data-name={name} className="log-control">
        <span>{character}</span>
      </span>
    );
  });
}
