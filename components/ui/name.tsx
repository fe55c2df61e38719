import { clsx } from 'clsx';
import type { ReactNode } from 'react';
import { cutText } from '@/lib/protocol/cut-text';
import { bracketed, type VerbatimPiece, verbatimPieces } from './verbatim';
import { needsBreaks, withBreaks } from './with-breaks';

/** Longer names are cut: a name is to know something by, and must not push away what it names. */
export const NAME_CHARACTERS = 400;

/**
 * What an agent calls something, on one line, as it is: what can't be seen or would turn its surroundings around is a
 * sign. For attributes and titles of pages, where no element can stand, `nameText` spells the same out.
 */
export function Name({ text, most = NAME_CHARACTERS }: { text: string; most?: number }): ReactNode {
  const isCut = text.length > most;
  const shown = isCut ? cutText(text, most) : text;
  return (
    <>
      <Pieces pieces={verbatimPieces(shown, 'name')} />
      {isCut && '…'}
    </>
  );
}

export function Pieces({ pieces }: { pieces: readonly VerbatimPiece[] }): ReactNode {
  const breaks = needsBreaks(pieces.map(({ text }) => text).join(''));
  return pieces.map((piece, at) =>
    piece.kind === 'text' && !breaks ? (
      piece.text
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces of a text have no other identity
      <Piece key={at} piece={piece} breaks={breaks} />
    ),
  );
}

function Piece({ piece, breaks }: { piece: VerbatimPiece; breaks: boolean }): ReactNode {
  switch (piece.kind) {
    case 'text':
      return withBreaks(piece.text, breaks);
    case 'rtl':
      return <bdi dir="rtl">{withBreaks(piece.text, breaks)}</bdi>;
    case 'tab':
      return <span className="verbatim-tab">{piece.text}</span>;
    case 'sign': {
      const isBlankLines = piece.text.startsWith('\n\n');
      return <span className={clsx('verbatim-sign', isBlankLines && 'block w-fit')}>{bracketed(piece.label)}</span>;
    }
  }
}
