import { clsx } from 'clsx';
import type { Token, Tokens } from 'marked';
import { memo, type ReactNode } from 'react';
import { directionOf } from '../direction';
import { withBreaks } from '../with-breaks';
import { CodeBlock } from './code-block';
import { renderInline } from './inline';
import type { LongTable } from './parse';
import { Table } from './table';

/** Deeper nesting is shown as written. */
const DEEPEST = 12;

interface BlockProps {
  token: Token;
  streaming: boolean;
  depth?: number;
}

/** A block of a message. While a message streams, only its last blocks render again. */
export const Block = memo(
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
  return tokens.map((token, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: a text only grows at its end, so the index is stable
    <Block key={at} token={token} streaming={streaming && at === tokens.length - 1} depth={depth} />
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
      {list.items.map((item, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: see Blocks
        <li key={at} className={clsx('my-0.5 ps-0.5', item.task && '-ms-4 list-none')}>
          {item.task && <span aria-hidden="true">{item.checked ? '☑ ' : '☐ '}</span>}
          {item.task && <span className="sr-only">{item.checked ? 'done: ' : 'to do: '}</span>}
          {inner(item.tokens.filter((token) => token.type !== 'checkbox'))}
        </li>
      ))}
    </Tag>
  );
}
