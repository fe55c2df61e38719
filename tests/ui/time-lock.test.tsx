import type { Task, Turn } from '@interlude/protocol/read-models';
import type { ReactElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { useTaskSlots } from '@/app/(console)/sessions/[sessionId]/session-transcript';
import { spanOf } from '@/components/time-lock/time-lock';
import { TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { TurnArticle } from '@/components/transcript/turn-article';
import { NowProvider } from '@/components/ui/clock';
import { TimeLockProvider } from '@/components/ui/time-lock';
import { aMessage, aTask, aTaskMoment, aTurn } from './rows';

interface Shown {
  turns: Turn[];
  tasks?: Task[];
  /** Absent: there is no log beside the page. */
  held?: string | null;
}

function Page({ turns, tasks = [], held }: Shown): ReactElement {
  const lock = held === undefined ? null : { lockedAnchor: held, toggle: () => {} };
  return (
    <NowProvider renderedAt={63_000}>
      <TimeLockProvider value={lock}>
        <TranscriptSlotsProvider value={useTaskSlots(tasks, turns)}>
          {turns.map((turn) => (
            <TurnArticle key={turn.id} turn={turn} flash={false} />
          ))}
        </TranscriptSlotsProvider>
      </TimeLockProvider>
    </NowProvider>
  );
}

/** Names and pressed states of the buttons. */
function buttons(shown: Shown): Set<string> {
  const markup = renderToStaticMarkup(<Page {...shown} />);
  const found = markup.matchAll(/aria-label="Show in log: ([^"]*)" aria-pressed="(true|false)"/g);
  return new Set([...found].map(([, name, pressed]) => (pressed === 'true' ? `${name}, held` : (name ?? ''))));
}

const asked = (text: string) => aMessage({ role: 'user', text });

describe('the button that shows a span in the log', () => {
  const turn = aTurn({ items: [asked('Watch the deploy\nand tell me'), aTaskMoment()] });

  it('is named after its turn or task', () => {
    expect(buttons({ turns: [turn], tasks: [aTask()], held: null })).toEqual(
      new Set(['User turn “Watch the deploy and tell me”', 'task “Poll”']),
    );
  });

  it('shows which one the log is locked to', () => {
    const held = buttons({ turns: [turn], tasks: [aTask()], held: 'task-10' });
    expect(held).toEqual(new Set(['User turn “Watch the deploy and tell me”', 'task “Poll”, held']));
    expect(buttons({ turns: [turn], held: 'turn-r1' })).toContain('User turn “Watch the deploy and tell me”, held');
  });

  it('is missing if the page has no log', () => {
    expect(buttons({ turns: [turn], tasks: [aTask()] }).size).toBe(0);
  });

  it('shortens a long question, and spells out control characters', () => {
    const long = aTurn({ items: [asked(`\u001b[31m${'a word '.repeat(300)}`)] });
    expect(buttons({ turns: [long], held: null })).toEqual(
      new Set(['User turn “⟨ESC⟩[31ma word a word a word a word a word a word a…”']),
    );
  });
});

describe('spanOf', () => {
  it('covers a turn from start to end, inclusive', () => {
    expect(spanOf('turn-r1', [aTurn()], [])).toEqual({ from: 1_000, to: 3_000 });
  });

  it('has no end while something runs', () => {
    const open = aTurn({ state: 'open', endedAt: null });
    expect(spanOf('turn-r1', [open], [])).toEqual({ from: 1_000, to: Number.POSITIVE_INFINITY });
    expect(spanOf('task-10', [], [aTask()])).toEqual({ from: 1_000, to: Number.POSITIVE_INFINITY });
  });

  it('covers the run of the card if an id was reused', () => {
    const runs = [aTask({ endedAt: 2_000 }), aTask({ position: '30', startedAt: 5_000, endedAt: 6_000 })];
    expect(spanOf('task-10', [], runs)).toEqual({ from: 1_000, to: 2_000 });
    expect(spanOf('task-30', [], runs)).toEqual({ from: 5_000, to: 6_000 });
  });

  it('ends with the last item outside of turns', () => {
    const items = [aMessage({ at: 1_000 }), aMessage({ at: 1_800 })];
    const none = aTurn({ id: 'none:5', kind: 'none', endedAt: 1_000, items });
    expect(spanOf('turn-none:5', [none], [])).toEqual({ from: 1_000, to: 1_800 });
  });

  it('is null for an unknown anchor', () => {
    expect(spanOf('turn-r9', [aTurn()], [])).toBeNull();
    expect(spanOf('task-9', [], [aTask()])).toBeNull();
  });
});
