import { truncateText, withoutQuotes } from '@interlude/protocol/text';
import { clsx } from 'clsx';
import type { ReactNode } from 'react';
import { needsBreaks, withBreaks } from './line-breaks';
import { bracketed, isPlainName, type VerbatimPiece, verbatimPieces } from './verbatim';

/** Longer names are cut: a name is to know something by, and must not push away what it names. */
export const NAME_CHARACTERS = 400;

/**
 * And those of more signs: each is an element, and a list may have hundreds of names. Two words from right to left count
 * as one.
 */
const NAME_SIGNS = 12;

/**
 * What an agent calls something, on one line, as it is: what can't be seen or would turn its surroundings around is a
 * sign. For attributes and titles of pages, where no element can stand, `nameText` spells the same out.
 *
 * @param signs how many of them may be shown
 * @param layout `tool` for the name of a tool or a command, or of a file behind a path in ASCII
 */
export function Name(props: { text: string; most?: number; signs?: number; layout?: 'name' | 'tool' }): ReactNode {
  const { text, most = NAME_CHARACTERS, signs = NAME_SIGNS, layout = 'name' } = props;
  const isLong = text.length > most;
  const pieces = verbatimPieces(isLong ? truncateText(text, most) : text, layout);
  const shown = firstSigns(pieces, signs);
  return (
    <>
      <Pieces pieces={shown} />
      {(isLong || shown.length < pieces.length) && '…'}
    </>
  );
}

/**
 * What people and agents say, on one line, to be read: letters run as their script does, and what can't be seen is a
 * sign. It stands in an element of its own with `dir="auto"`, so that it turns around nothing else.
 *
 * @param strict what joins letters is a sign, too: for words that are told apart by it
 */
export function Words(props: { text: string; most?: number; signs?: number; strict?: boolean }): ReactNode {
  const { text, most = NAME_CHARACTERS, signs = NAME_SIGNS, strict = false } = props;
  const isLong = text.length > most;
  const pieces = verbatimPieces(isLong ? truncateText(text, most) : text, strict ? 'name' : 'words');
  const shown = firstSigns(pieces, signs);
  return (
    <>
      <Pieces pieces={shown.map((piece) => (piece.kind === 'rtl' ? { ...piece, kind: 'text' } : piece))} />
      {(isLong || shown.length < pieces.length) && '…'}
    </>
  );
}

/** `Name` in quotes: words of others within a sentence of ours. See `inQuotes`. */
export function Quoted({ text, ...limits }: { text: string; most?: number; signs?: number }): ReactNode {
  return (
    <>
      “<Name {...limits} text={withoutQuotes(text)} />”
    </>
  );
}

function firstSigns(pieces: readonly VerbatimPiece[], most: number): readonly VerbatimPiece[] {
  let signs = 0;
  const beyond = pieces.findIndex(({ kind }) => {
    signs += kind === 'text' ? 0 : kind === 'rtl' ? 0.5 : 1;
    return signs > most;
  });
  return beyond < 0 ? pieces : pieces.slice(0, beyond);
}

/** About how many elements a name is where all of it is shown. */
export function nameElements(text: string): number {
  if (isPlainName(text)) return 0;
  const pieces = verbatimPieces(text, 'name');
  return needsBreaks(text) ? 2 * pieces.length : pieces.filter(({ kind }) => kind !== 'text').length;
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
    case 'origin':
      return (
        <span data-origin="" className="verbatim-sign">
          {bracketed(piece.label)}
        </span>
      );
    case 'sign': {
      const isBlankLines = piece.text.startsWith('\n\n');
      return <span className={clsx('verbatim-sign', isBlankLines && 'block w-fit')}>{bracketed(piece.label)}</span>;
    }
  }
}
