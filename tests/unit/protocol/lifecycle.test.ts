import { Entities, GRAMMAR, type InputOf, type Kind, OPEN } from '@interlude/protocol/lifecycle/grammar';
import { NOTHING_OPEN, OpenSession, turnStep } from '@interlude/protocol/lifecycle/open-session';
import { describe, expect, test } from 'vitest';

/** Every state × input pair: `state input → next verdict`. A change of the grammar is a change here. */
const PAIRS = {
  turn: `
    none begin → open begins          held begin → open begins          open begin → open late
    none announce → held continues    held announce → held repeats      open announce → held late
    none join → open begins           held join → open begins           open join → open continues
    none request → none stray         held request → open begins        open request → open continues
    none content → open begins        held content → open begins        open content → open continues
    none end → none begins            held end → none begins            open end → none ends
    none foreign-end → none stray     held foreign-end → none stray     open foreign-end → open stray
    none gone → none stray            held gone → none stray            open gone → none ends`,
  text: `
    new start → open begins           open start → open repeats         ended start → ended late
    new delta → open begins           open delta → open continues       ended delta → ended late
    new whole → open begins           open whole → open continues       ended whole → ended corrects
    new end → new stray               open end → ended ends             ended end → ended repeats
    new cut → new stray               open cut → ended ends             ended cut → ended repeats`,
  call: `
    new start → open begins           open start → open repeats         closed start → closed repeats      answered start → answered late
    new args → new stray              open args → open continues        closed args → closed late          answered args → answered late
    new end → new stray               open end → closed ends            closed end → closed repeats        answered end → answered repeats
    new result → new stray            open result → answered ends       closed result → answered continues answered result → answered repeats
    new cut → new stray               open cut → left ends              closed cut → left ends             answered cut → answered repeats
    left start → left late            left args → left late             left end → left repeats            left result → answered continues
    left cut → left repeats`,
  task: `
    new start → running begins        hidden start → running begins     running start → running repeats
    new hide → hidden stray           hidden hide → hidden repeats      running hide → running repeats
    new report → new stray            hidden report → hidden stray      running report → running continues
    new end → ended ends              hidden end → hidden stray         running end → ended ends
    new presume → new stray           hidden presume → hidden stray     running presume → presumed ends
    presumed start → running corrects presumed hide → presumed late     presumed report → presumed late
    presumed end → ended corrects     presumed presume → presumed repeats
    ended start → ended repeats       ended hide → ended repeats        ended report → ended late
    ended end → ended repeats         ended presume → ended repeats`,
  request: `
    new ask → open begins             open ask → open repeats           passed ask → open corrects         resolved ask → open begins
    new pass → new stray              open pass → passed ends           passed pass → passed repeats       resolved pass → resolved repeats
    new answer → new stray            open answer → resolved ends       passed answer → resolved corrects  resolved answer → resolved repeats
    new cut → new stray               open cut → resolved ends          passed cut → resolved repeats      resolved cut → resolved repeats`,
} satisfies Record<Exclude<Kind, 'thought' | 'bracket'>, string>;

const KINDS = Object.keys(PAIRS) as (keyof typeof PAIRS)[];
const found = (kind: keyof typeof PAIRS) =>
  [...PAIRS[kind].matchAll(/(\S+) (\S+) → (\S+) (\S+)/g)].map(([, state, input, next, verdict]) => ({
    ...{ state, input, next, verdict },
  }));

test('thoughts and brackets share the grammar of texts', () => {
  expect([GRAMMAR.thought, GRAMMAR.bracket]).toEqual([GRAMMAR.text, GRAMMAR.text]);
});

describe.each(KINDS)('the grammar of a %s', (kind) => {
  test.each(found(kind))('$state, $input: $next, $verdict', ({ state, input, next, verdict }) => {
    const table: Record<string, Record<string, unknown>> = GRAMMAR[kind];
    expect(table[state as string]?.[input as string]).toEqual([next, verdict]);
  });

  test('decides every pair once', () => {
    const pairs = Object.entries(GRAMMAR[kind]).flatMap(([state, row]) =>
      Object.keys(row).map((input) => `${state} ${input}`),
    );
    expect(
      found(kind)
        .map(({ state, input }) => `${state} ${input}`)
        .sort(),
    ).toEqual(pairs.sort());
  });

  test('leaves nothing open when its owner ends', () => {
    const cut = { turn: 'gone', text: 'cut', call: 'cut', task: 'presume', request: 'cut' } as const;
    const table: Record<string, Record<string, readonly [string, string]>> = GRAMMAR[kind];
    const open: ReadonlySet<string> = OPEN[kind];
    for (const state of open) {
      expect(open.has(table[state]?.[cut[kind]]?.[0] ?? '')).toBe(false);
    }
  });
});

describe('entities', () => {
  const take = (calls: Entities<'call', string>, ...inputs: InputOf<'call'>[]) =>
    inputs.map((input) => calls.take('c', input));
  const calls = (mostOpen = 3, mostEnded = 3) => new Entities<'call', string>('call', { mostOpen, mostEnded });

  test('follow the grammar', () => {
    expect(take(calls(), 'result', 'start', 'args', 'end', 'args', 'result', 'result')).toEqual([
      ...['stray', 'begins', 'continues', 'ends', 'late', 'continues', 'repeats'],
    ]);
  });

  test('keep data until replaced', () => {
    const known = calls();
    known.take('a', 'start', 'first');
    known.take('a', 'end');
    expect(known.about('a')).toBe('first');
    known.take('a', 'result', 'second');
    expect(known.about('a')).toBe('second');
  });

  test('report the oldest open one when full, and forget the oldest ended one', () => {
    const known = calls(2, 1);
    expect(known.crowded).toBeNull();
    for (const id of ['a', 'b']) known.take(id, 'start', id);
    expect(known.crowded).toBe('a');
    for (const id of ['a', 'b']) known.take(id, 'result');
    expect([known.open, known.stateOf('a'), known.stateOf('b')]).toEqual([[], 'new', 'answered']);
  });

  test('return a verdict without applying the input', () => {
    const known = calls();
    expect(known.verdict('a', 'start')).toBe('begins');
    expect(known.stateOf('a')).toBe('new');
  });
});

describe('an open session', () => {
  const turn = (input: 'begin' | 'end', id: string | null) =>
    ({ kind: 'turn', id, input, by: null, runId: null }) as const;

  test('distinguishes foreign starts and ends from repeated ones', () => {
    expect([turnStep('a', turn('begin', 'b')), turnStep('a', turn('begin', 'a'))]).toEqual([
      ['open', 'late'],
      ['open', 'continues'],
    ]);
    expect([
      turnStep('a', turn('end', 'b')),
      turnStep('a', turn('end', null)),
      turnStep(null, turn('end', 'a')),
    ]).toEqual([
      ['open', 'stray'],
      ['none', 'ends'],
      ['none', 'begins'],
    ]);
  });

  test('evicts the oldest evictable call and drops long arguments', () => {
    const stays = ({ name }: { name: string }) => name === 'Ask';
    const session = new OpenSession(NOTHING_OPEN, [], { most: 2, mostEnded: 1, maxArgs: 4, maxAllArgs: 6, stays });
    for (const toolCallName of ['Ask', 'Bash', 'Read']) {
      session.take({ type: 'TOOL_CALL_START', toolCallId: toolCallName, toolCallName });
      session.take({ type: 'TOOL_CALL_ARGS', toolCallId: toolCallName, delta: '1234' });
    }
    expect(session.calls.map(({ id, args }) => [id, args])).toEqual([
      ['Ask', '1234'],
      ['Read', null],
    ]);
    session.take({ type: 'TOOL_CALL_START', toolCallId: 'Read', toolCallName: 'Read' });
    session.take({ type: 'TOOL_CALL_ARGS', toolCallId: 'Read', delta: '12' });
    expect(session.calls.at(-1)?.args).toBe('12');
    session.endCall('Read');
    session.take({ type: 'TOOL_CALL_START', toolCallId: 'Read', toolCallName: 'Read' });
    session.take({ type: 'RUN_FINISHED', runId: 'a' });
    expect([session.calls, session.endedCallIds]).toEqual([[], ['Read']]);
  });
});
