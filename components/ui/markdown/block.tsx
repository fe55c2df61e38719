'use client';

import { clsx } from 'clsx';
import type { Token, Tokens } from 'marked';
import { memo, type ReactNode, type RefObject, useEffect, useRef, useState } from 'react';
import { withBreaks } from '../line-breaks';
import { toPlainText } from '../plain-text';
import { nameText, RTL } from '../verbatim';
import { CodeBlock } from './code-block';
import { renderInline } from './inline';
import { countPieces, type LongTable } from './parse';

/** Deeper nesting is shown as written. */
const DEEPEST = 12;

interface BlockProps {
  token: Token;
  streaming: boolean;
  depth?: number;
}

/** A block of a message. While a message streams, only its last blocks render again. */
const Block = memo(
  function Block({ token, streaming, depth = 0 }: BlockProps): ReactNode {
    if (depth > DEEPEST)
      return (
        <p dir="auto" className="whitespace-pre-wrap">
          {withBreaks(token.raw)}
        </p>
      );
    const inner = (tokens: Token[]) => <Blocks tokens={tokens} streaming={streaming} depth={depth + 1} />;
    switch (token.type) {
      case 'paragraph':
        return (
          <p dir="auto" className="my-2">
            {renderInline(token.tokens)}
          </p>
        );
      // The text of a tight list item.
      case 'text':
        return <span dir="auto">{token.tokens ? renderInline(token.tokens) : withBreaks(token.text)}</span>;
      case 'heading':
        return (
          // One level for all headings: an agent's outline must not disturb the page's.
          <h3 dir="auto" className={HEADING[Math.min(3, token.depth)]}>
            {renderInline(token.tokens)}
          </h3>
        );
      case 'code':
        return (
          <CodeBlock code={token.text} language={/^\S*/.exec(token.lang ?? '')?.[0] ?? ''} streaming={streaming} />
        );
      case 'list':
        return <List list={token as Tokens.List} inner={inner} />;
      case 'blockquote':
        return (
          <blockquote dir={directionOf(token.raw)} className="my-2 border-line-strong border-s-2 ps-3 text-ink-2">
            {inner(token.tokens ?? [])}
          </blockquote>
        );
      case 'table':
        return <Table table={token as LongTable} />;
      case 'hr':
        return <hr className="my-4" />;
      case 'space':
      case 'def':
        return null;
      default:
        return (
          <p dir="auto" className="my-2 whitespace-pre-wrap">
            {withBreaks(token.raw.trimEnd())}
          </p>
        );
    }
  },
  (before, after) => before.token.raw === after.token.raw && before.streaming === after.streaming,
);

const HEADING: Record<number, string> = {
  1: 'mt-5 mb-2 text-lg font-semibold',
  2: 'mt-4 mb-1.5 text-md font-semibold',
  3: 'mt-3 mb-1 text-md font-medium',
};

export function Blocks({
  tokens,
  streaming,
  depth,
}: {
  tokens: readonly Token[];
  streaming: boolean;
  depth: number;
}): ReactNode {
  return tokens.map((token, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a text only grows at its end, so the index is stable
    <Block key={index} token={token} streaming={streaming && index === tokens.length - 1} depth={depth} />
  ));
}

function List({ list, inner }: { list: Tokens.List; inner: (tokens: Token[]) => ReactNode }): ReactNode {
  const Tag = list.ordered ? 'ol' : 'ul';
  return (
    <Tag
      start={list.ordered && typeof list.start === 'number' && list.start !== 1 ? list.start : undefined}
      dir={directionOf(list.raw)}
      className={clsx('my-2 ps-5 marker:text-ink-3', list.ordered ? 'list-decimal' : 'list-disc')}
    >
      {list.items.map((item, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: see Blocks
        <li key={index} className={clsx('my-0.5 ps-0.5', item.task && '-ms-4 list-none')}>
          {item.task && <span aria-hidden="true">{item.checked ? '☑ ' : '☐ '}</span>}
          {item.task && <span className="sr-only">{item.checked ? 'done: ' : 'to do: '}</span>}
          {inner(item.tokens.filter((token) => token.type !== 'checkbox'))}
        </li>
      ))}
    </Tag>
  );
}

/** Limits of a table's layout. */
const MAX_COLUMNS = 50;
const MAX_CELL_PIECES = 1_500;
const NAMING_COLUMNS = 4;
/** A longer cell wraps, at about this width. */
const SHORT_CELL = 16;

/** A table. Words stay whole: a wide table scrolls, and is focusable only then. */
function Table({ table }: { table: LongTable }): ReactNode {
  const { box, overflows } = useOverflowsSideways<HTMLDivElement>();
  const { rowCount } = table;
  const rows = shownRows(table);
  const isCut = rows.length < rowCount || table.header.length > MAX_COLUMNS;
  return (
    <div className="my-3">
      <div
        ref={box}
        // On the box, so that a narrow table starts at the right side.
        dir={directionOf(table.raw)}
        {...(overflows && { role: 'group', 'aria-label': tableName(table), tabIndex: 0 })}
        className="scroll-sideways overflow-x-auto pb-1"
      >
        <table className="text-sm [&_:is(td,th,a,code)]:[overflow-wrap:normal]">
          <thead>
            <tr className="border-line-strong border-b">
              {table.header.slice(0, MAX_COLUMNS).map((cell, index) => (
                <th
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other identity
                  key={index}
                  scope="col"
                  dir="auto"
                  className={clsx('py-1 pe-5 align-bottom font-medium text-ink-2', lookOf(cell))}
                >
                  {renderInline(cell.tokens)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, index) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: rows have no other identity
              <tr key={index} className="border-b last:border-0">
                {row.slice(0, MAX_COLUMNS).map((cell, column) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other identity
                  <td key={column} dir="auto" className={clsx('py-1 pe-5 align-top', lookOf(cell))}>
                    {renderInline(cell.tokens)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {isCut && (
        <p className="mt-1 text-2xs text-ink-3">
          Showing the beginning of {rowCount.toLocaleString('en')} rows and {table.header.length.toLocaleString('en')}{' '}
          columns.
        </p>
      )}
    </div>
  );
}

/** `Table: Check, Result` */
function tableName({ header }: Tokens.Table): string {
  const columns = header
    .slice(0, NAMING_COLUMNS)
    .map(({ text }) => nameText(toPlainText(text), 60))
    .filter(Boolean);
  return columns.length === 0 ? 'Table' : `Table: ${columns.join(', ')}`;
}

/** Rows that can be laid out without a pause: fewer if they are wide or their cells are complex. */
function shownRows({ rows }: LongTable): Tokens.TableCell[][] {
  let count = 0;
  for (let pieces = 0; count < rows.length && pieces < MAX_CELL_PIECES; count++) {
    for (const cell of rows[count]?.slice(0, MAX_COLUMNS) ?? []) pieces += 1 + countPieces(cell.tokens);
  }
  return rows.slice(0, count);
}

function lookOf({ text, align }: Tokens.TableCell): string {
  return clsx(text.length <= SHORT_CELL ? 'whitespace-nowrap' : 'min-w-[16ch]', ALIGN[align ?? 'start']);
}

const ALIGN = { start: 'text-start', left: 'text-left', right: 'text-right tabular', center: 'text-center' };

/** True if a box has content to scroll sideways. False on the server. */
function useOverflowsSideways<Box extends HTMLElement>(): { box: RefObject<Box | null>; overflows: boolean } {
  const box = useRef<Box>(null);
  const [overflows, setOverflows] = useState(false);
  useEffect(() => {
    const outer = box.current;
    const inner = outer?.firstElementChild;
    if (!outer || !inner) return;
    const observer = new ResizeObserver(() => setOverflows(outer.scrollWidth > outer.clientWidth));
    observer.observe(outer);
    observer.observe(inner);
    return () => observer.disconnect();
  }, []);
  return { box, overflows };
}

/** Enough to reach the first letter behind markup. */
const LOOKED_AT = 500;

const BEGINS_RTL = new RegExp(`^${RTL}`, 'u');

/**
 * Direction of a block, by its first letter outside code. `dir="auto"` can't be used for blocks whose children have a
 * `dir`, because it skips those.
 */
function directionOf(markdown: string): 'ltr' | 'rtl' {
  const letter = /\p{L}/u.exec(markdown.slice(0, LOOKED_AT).replace(/`[^`]*`/g, ''))?.[0] ?? '';
  return BEGINS_RTL.test(letter) ? 'rtl' : 'ltr';
}
