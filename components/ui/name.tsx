import { clsx } from 'clsx';
import type { ReactNode } from 'react';
import { cutText } from '@/lib/protocol/cut-text';
import { bracketed, type VerbatimPiece, verbatimPieces } from './verbatim';

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
  return pieces.map((piece, at) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: pieces of a text have no other identity
    piece.kind === 'text' ? piece.text : <Piece key={at} piece={piece} />,
  );
}

function Piece({ piece }: { piece: Exclude<VerbatimPiece, { kind: 'text' }> }): ReactNode {
  switch (piece.kind) {
    case 'rtl':
      return <bdi dir="rtl">{piece.text}</bdi>;
    case 'tab':
      return <span className="verbatim-tab">{piece.text}</span>;
    case 'sign': {
      const isBlankLines = piece.text.startsWith('\n\n');
      return <span className={clsx('verbatim-sign', isBlankLines && 'block w-fit')}>{bracketed(piece.label)}</span>;
    }
  }
}
