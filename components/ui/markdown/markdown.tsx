'use client';

import { clsx } from 'clsx';
import type { Token } from 'marked';
import { createContext, useContext, useEffect, useMemo, useRef, useState } from 'react';
import { CopyButton } from '../copy-button';
import { formatLength } from '../format-size';
import { enqueueIdle } from '../idle-queue';
import { longRunClass } from '../line-breaks';
import { endOfFirstProse, LongText, MoreText, proseText } from '../prose';
import { foldLines } from '../truncate';
import { UnfoldButton } from '../unfold';
import { Blocks } from './block';
import { NOTHING_PARSED, nextStep, type Parsed, parseLight, unparsedPart, withPart } from './parse';
import { runInWorker } from './run-in-worker';

/** The rest is shown as written, on demand. */
const MAX_CHARACTERS = 120_000;

/** Characters shown of unparsed text. A page may have many such texts. */
const AS_WRITTEN = 2_000;

/**
 * An agent's Markdown as elements.
 *
 * Failure: the text may be hostile. No step produces HTML (tokens become React elements, raw HTML stays text), links
 * lead only to http, https and mailto, and nothing is fetched. A text that can't be parsed in time is shown as written.
 */
export function Markdown(props: { text: string; streaming?: boolean; className?: string }) {
  const { text, streaming = false, className } = props;
  const [all, setAll] = useState(false);
  const folded = useMemo(() => (all ? { text, fullLength: null } : foldLines(text)), [text, all]);
  const end = useMemo(() => endOfFirstProse(folded.text, MAX_CHARACTERS), [folded]);
  const clean = useMemo(() => proseText(folded.text.slice(0, end)), [folded, end]);
  const { tokens, rest, isDone } = useParsed(clean, streaming);
  return (
    <div className={clsx('text-md [overflow-wrap:anywhere] *:first:mt-0 *:last:mb-0', longRunClass(clean), className)}>
      <Blocks tokens={tokens} streaming={streaming} depth={0} />
      {rest !== '' && <LongText text={rest} max={AS_WRITTEN} className="my-2" />}
      {rest !== '' && isDone && <p className="my-1 text-2xs text-ink-3">The rest is shown as plain text.</p>}
      <MoreText text={folded.text} from={end} />
      {folded.fullLength !== null && (
        <p className="my-1 flex items-center gap-3 text-2xs text-ink-3">
          <UnfoldButton onPress={() => setAll(true)}>Show all ({formatLength(folded.fullLength)})</UnfoldButton>
          <CopyButton label="Copy all" text={() => text} />
        </p>
      )}
    </div>
  );
}

const CACHE_SIZE = 50;

/** The texts that the server parses into the page; null in the browser. */
export const ParsedAtOnce = createContext<ReadonlySet<string> | null>(null);

/** Texts that the worker has parsed: a row that is scrolled back into view has its blocks immediately. */
const cache = new Map<string, Parsed>();

interface Wanted {
  text: string;
  streaming: boolean;
  mayParse: boolean;
}

interface Shown extends Wanted {
  parsed: Parsed;
  /** Blocks in the page. */
  count: number;
}

/**
 * The parsed blocks of a text, then its unparsed end. Short texts are parsed during the render, others by the worker.
 * However long the text is, one render adds a bounded number of elements.
 *
 * @param streaming true while the text grows
 */
function useParsed(text: string, streaming: boolean): { tokens: readonly Token[]; rest: string; isDone: boolean } {
  const parsedAtOnce = useContext(ParsedAtOnce);
  const mayParse = parsedAtOnce === null || parsedAtOnce.has(text);
  const wanted: Wanted = { text, streaming, mayParse };
  const [state, setState] = useState<Shown>(() => update({ ...wanted, parsed: NOTHING_PARSED, count: 0 }, wanted));
  const isCurrent = state.text === text && state.streaming === streaming && state.mayParse === mayParse;
  const shown = isCurrent ? state : update(state, wanted);
  if (shown !== state) setState(shown);
  const { parsed, count } = shown;
  const isParsed = parsed.text === text && parsed.isGrowing === streaming;

  const isBusy = useRef(false);
  const [jobs, setJobs] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a finished job may leave text for another one
  useEffect(() => {
    if (isParsed || !mayParse || isBusy.current) return;
    isBusy.current = true;
    void runInWorker(['parse', unparsedPart(parsed, text)]).then((blocks) => {
      isBusy.current = false;
      const next = blocks === null ? asWritten(parsed, text, streaming) : withPart(parsed, text, blocks, streaming);
      if (!streaming && blocks !== null) remember(next);
      setState((before) => (before.text.startsWith(text) ? update(withParsed(before, next), before) : before));
      setJobs((finished) => finished + 1);
    });
  }, [isParsed, mayParse, parsed, text, streaming, jobs]);

  const isLeft = count < parsed.blocks.length;
  useEffect(() => {
    if (!isLeft) return;
    const step = enqueueIdle(() =>
      setState((before) => (before.parsed === parsed ? { ...before, count: nextStep(parsed, count) } : before)),
    );
    return () => step.cancel();
  }, [isLeft, parsed, count]);

  return {
    tokens: parsed.blocks.slice(0, count),
    rest: text.slice(parsed.ends[count - 1] ?? 0),
    isDone: isParsed && !isLeft,
  };
}

/** Parses what is quick to parse. Until the worker has parsed the rest, it stays as written. */
function update(before: Shown, { text, streaming, mayParse }: Wanted): Shown {
  const wanted = { text, streaming, mayParse };
  // A text that was complete may have settled blocks that more text changes.
  const mayContinue = before.parsed.isGrowing ? text.startsWith(before.parsed.text) : text === before.parsed.text;
  const known = mayContinue ? before : { ...before, parsed: NOTHING_PARSED, count: 0 };
  const isParsed = known.parsed.text === text && known.parsed.isGrowing === streaming;
  if (!mayParse || isParsed) return { ...known, ...wanted };
  const cached = streaming ? undefined : cache.get(text);
  const parsed = cached ?? parseLight(known.parsed, text, streaming);
  return { ...(parsed === null ? known : withParsed(known, parsed)), ...wanted };
}

function withParsed(before: Shown, parsed: Parsed): Shown {
  return { ...before, parsed, count: nextStep(parsed, Math.min(before.count, parsed.blocks.length)) };
}

function asWritten({ blocks, ends, settled }: Parsed, text: string, streaming: boolean): Parsed {
  return {
    text,
    blocks: blocks.slice(0, settled),
    ends: ends.slice(0, settled),
    settled,
    isFull: true,
    isGrowing: streaming,
  };
}

function remember(parsed: Parsed): void {
  cache.set(parsed.text, parsed);
  const oldest = cache.keys().next().value;
  if (cache.size > CACHE_SIZE && oldest !== undefined) cache.delete(oldest);
}
