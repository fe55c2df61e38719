import { truncateText, withoutQuotes } from '@interlude/protocol/text';
import { clsx } from 'clsx';
import type { ComponentProps, ReactNode } from 'react';
import { needsBreaks, withBreaks, withFlags } from './line-breaks';
import { bracketed, type VerbatimLayout, type VerbatimPiece, verbatimPieces } from './verbatim';

/** Longer names are truncated, so that they don't push other content away. */
export const NAME_CHARACTERS = 400;

/**
 * Names with more labels such as `⟨RLO⟩` are truncated, too: each label is an element, and a list may have hundreds of
 * names. A right-to-left word counts as half.
 */
const NAME_SIGNS = 12;

interface NameProps {
  text: string;
  max?: number;
  /** Maximum number of labels. */
  signs?: number;
}

/**
 * A name given by an agent, verbatim on one line: characters that are invisible or change the direction of the text
 * around them become labels. Use `nameText` for attributes and page titles.
 *
 * @param layout `tool` for the name of a tool or a command, or of a file after an ASCII path
 */
export function Name({ layout = 'name', ...props }: NameProps & { layout?: 'name' | 'tool' }): ReactNode {
  return <Line {...props} layout={layout} />;
}

/**
 * A message or description on one line, for reading: text runs in the direction of its script, and invisible characters
 * become labels. Put it into an element with `dir="auto"`, or use `Phrase`.
 *
 * @param strict labels joiners, too, for texts that must be distinguishable
 */
export function Words({ strict = false, ...props }: NameProps & { strict?: boolean }): ReactNode {
  return <Line {...props} layout={strict ? 'name' : 'words'} isReadingOrder />;
}

/** A tool's name and its input. */
export function ToolLine({ tool, line }: { tool: string | null; line: string }): ReactNode {
  return (
    <>
      {tool !== null && (
        <span className="font-medium">
          <Name text={tool} layout="tool" />{' '}
        </span>
      )}
      <bdi className="font-mono text-[0.94em]">
        <Words strict text={line} />
      </bdi>
    </>
  );
}

/** `Words` isolated from the direction of the text around it. */
export function Phrase(words: ComponentProps<typeof Words>): ReactNode {
  return (
    <bdi>
      <Words {...words} />
    </bdi>
  );
}

/** @param isReadingOrder right-to-left letters follow the direction around them instead of being isolated */
function Line(props: NameProps & { layout: VerbatimLayout; isReadingOrder?: boolean }): ReactNode {
  const { text, max = NAME_CHARACTERS, signs = NAME_SIGNS, layout, isReadingOrder = false } = props;
  const isLong = text.length > max;
  const pieces = verbatimPieces(isLong ? truncateText(text, max).trimEnd() : text, layout);
  const shown = firstSigns(pieces, signs);
  return (
    <>
      <Pieces
        pieces={
          isReadingOrder ? shown.map((piece) => (piece.kind === 'rtl' ? { ...piece, kind: 'text' } : piece)) : shown
        }
      />
      {(isLong || shown.length < pieces.length) && '…'}
    </>
  );
}

/** `Name` in quotes, for use within our own sentences. See `inQuotes`. */
export function Quoted({ text, ...limits }: NameProps): ReactNode {
  return (
    <>
      “<Name {...limits} text={withoutQuotes(text)} />”
    </>
  );
}

function firstSigns(pieces: readonly VerbatimPiece[], max: number): readonly VerbatimPiece[] {
  let signs = 0;
  const beyond = pieces.findIndex(({ kind }) => {
    signs += kind === 'text' ? 0 : kind === 'rtl' ? 0.5 : 1;
    return signs > max;
  });
  return beyond < 0 ? pieces : pieces.slice(0, beyond);
}

export function Pieces({ pieces }: { pieces: readonly VerbatimPiece[] }): ReactNode {
  const breaks = needsBreaks(pieces.map(({ text }) => text).join(''));
  return pieces.map((piece, index) =>
    piece.kind === 'text' && !breaks ? (
      withFlags(piece.text)
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: pieces of a text have no other identity
      <Piece key={index} piece={piece} breaks={breaks} />
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
