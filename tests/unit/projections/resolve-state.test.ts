import type { Observations, StateNote, StateRule } from '@interlude/protocol/agent-status';
import { resolveState, type StateFacts } from '@interlude/protocol/projections/resolve-state';
import type { ReportState, SessionState } from '@interlude/protocol/session-states';
import { describe, expect, it } from 'vitest';

/** Each rule with its facts, just before and after it applies. */
const NOW = 1_000_000;
const ago = (seconds: number) => NOW - seconds * 1_000;

const session = { observedAt: ago(3_600), turnId: null, value: null };
const running = (seconds: number) => ({ observedAt: ago(seconds), turnId: 'r1', value: { state: 'running' as const } });
const still = (seconds: number) => ({ observedAt: ago(seconds), turnId: 'r1', value: { state: 'finished' as const } });
const failedTurn = (seconds: number) => ({
  observedAt: ago(seconds),
  turnId: 'r1',
  value: { state: 'failed' as const, message: 'No credit' },
});
const outweighed = (seconds: number) => {
  const turn = failedTurn(seconds);
  return { ...turn, value: { ...turn.value, isOutweighed: true as const } };
};
const says = (state: ReportState, seconds: number) => ({
  observedAt: ago(seconds),
  turnId: 'r1',
  value: { state, summary: `says ${state}`, link: null },
});
const exited = (code: number | null, signal: string | null = null) => ({
  observedAt: ago(1),
  turnId: null,
  value: { code, signal, reason: null },
});
const tasks = (value: number) => ({ observedAt: ago(40), turnId: null, value });
const asked = { observedAt: ago(30), turnId: 'r1', value: 'Run rm?' };
const written = (seconds: number) => ({ observedAt: ago(seconds), turnId: null, value: null });
/** The server has recorded a silence with its usual length. */
const silence = (limitSeconds = 600, call?: string) => ({
  observedAt: NOW,
  turnId: null,
  value: { limitMs: limitSeconds * 1_000, ...(call === undefined ? {} : { call }) },
});
const usedCpu = (seconds: number) => ({ observedAt: ago(seconds), turnId: null, value: 40 });
const away = { since: ago(60), lastHeardAt: ago(75), agentGoesOn: false };

type Told = Partial<Observations> & { away?: StateFacts['away']; lastHeardAt?: number };

function at(now: number, { away = null, lastHeardAt = ago(1), ...observations }: Told) {
  return resolveState({ observations: { session, ...observations }, away, lastHeardAt }, now);
}

/** Expected result in the order of the table: rule, state, note. */
type Row = [what: string, told: Told, rule: StateRule, state: SessionState, note?: StateNote];

const ROWS: Row[] = [
  ['the process has ended', { process: exited(137), turn: running(5) }, 1, 'exited'],
  ['it was killed', { process: exited(null, 'SIGKILL'), turn: running(5) }, 1, 'exited'],
  [
    'it ended well, having reported completion',
    { process: exited(0), turn: still(2), report: says('complete', 3) },
    1,
    'complete',
  ],
  [
    'it ended badly, having reported completion',
    { process: exited(1), turn: still(2), report: says('complete', 3) },
    1,
    'exited',
  ],
  [
    'it ended well, having reported completion of an earlier turn',
    { process: exited(0), turn: { ...still(2), turnId: 'r2' }, report: says('complete', 30) },
    1,
    'exited',
  ],
  [
    'it ended well, having reported completion before a message',
    { process: exited(0), turn: still(2), report: { ...says('complete', 30), isOutdated: true } },
    1,
    'exited',
  ],
  ['a request waits in a turn', { request: asked, turn: running(5) }, 2, 'needs-input'],
  ['a request waits, and its runner has gone', { request: asked, away }, 2, 'needs-input'],
  ['nothing is heard of it', { away, turn: running(300) }, 3, 'unknown'],
  ['nothing is heard of it, and a message waits', { away, turn: still(300), message: written(5) }, 3, 'unknown'],
  [
    'nothing is heard of it since it was complete',
    { away, turn: still(300), report: says('complete', 301) },
    3,
    'unknown',
  ],
  ['a message is on its way', { message: written(59), turn: still(300) }, 4, 'working', 'delivering'],
  [
    'a message is on its way to an agent that had failed',
    { message: written(5), turn: failedTurn(9) },
    4,
    'working',
    'delivering',
  ],
  ['a message was on its way for a minute', { message: written(60), turn: still(300) }, 14, 'idle', 'inferred'],
  ['it reports failure and is still', { turn: still(1), report: says('failure', 2) }, 5, 'failed'],
  ['it reports failure, and what it does is not known', { report: says('failure', 2) }, 5, 'failed'],
  ['its last turn failed', { turn: failedTurn(300) }, 5, 'failed'],
  ['its last turn failed with tasks running', { turn: failedTurn(300), task: tasks(1) }, 5, 'failed'],
  [
    'its last turn failed though it had reported completion',
    { turn: failedTurn(3), report: says('complete', 4) },
    5,
    'failed',
  ],
  ['it reports completion of what failed', { turn: outweighed(30), report: says('complete', 4) }, 6, 'complete'],
  [
    'it reports failure before a message came',
    { turn: still(9), report: { ...says('failure', 9), isOutdated: true } },
    14,
    'idle',
    'inferred',
  ],
  ['it reports completion and is still', { turn: still(1), report: says('complete', 2) }, 6, 'complete'],
  [
    'it reports completion with tasks running',
    { turn: still(9), report: says('complete', 9), task: tasks(2) },
    6,
    'complete',
  ],
  ['it reports completion, and what it does is not known', { report: says('complete', 300) }, 6, 'complete'],
  [
    'it completes without a word',
    { turn: { ...still(1), value: { state: 'finished', isSilent: true } }, report: says('complete', 2) },
    6,
    'complete',
    'no-output',
  ],
  [
    'it was complete and has run for less than 5 s',
    { turn: running(4.999), report: says('complete', 60) },
    7,
    'complete',
  ],
  ['it has failed and has run for less than 5 s', { turn: running(4.999), report: says('failure', 60) }, 7, 'failed'],
  [
    'it reports completion in a turn that goes on',
    { turn: running(60), report: says('complete', 4.999) },
    7,
    'complete',
  ],
  ['it was complete and has run for 5 s', { turn: running(5), report: says('complete', 60) }, 8, 'working', 'resumed'],
  ['it had failed and has run for 5 s', { turn: running(5), report: says('failure', 60) }, 8, 'working', 'resumed'],
  ['it goes on with the turn it called complete', { turn: running(60), report: says('complete', 5) }, 8, 'working'],
  ['it says that it is idle, and runs', { turn: running(5), report: says('idle', 2) }, 9, 'working'],
  ['it has just become still and tasks run', { turn: still(0), task: tasks(2) }, 10, 'waiting-on-background'],
  [
    'it is still, idle by its own word, and tasks run',
    { turn: still(2), task: tasks(2), report: says('idle', 2) },
    10,
    'waiting-on-background',
  ],
  ['it runs with tasks', { turn: running(20), task: tasks(2) }, 14, 'working'],
  ['it says that it is idle, and is still', { turn: still(60), report: says('idle', 60) }, 11, 'idle'],
  ['it says that it is idle, and what it does is not known', { report: says('idle', 60) }, 11, 'idle'],
  [
    'it says that it works, and was still for less than 10 s',
    { turn: still(9.999), report: says('working', 60) },
    12,
    'working',
  ],
  [
    'it has just said that it works, though it is still',
    { turn: still(60), report: says('working', 9.999) },
    12,
    'working',
  ],
  ['it says that it works, and runs', { turn: running(60), report: says('working', 60) }, 12, 'working'],
  ['it says that it works, and what it does is not known', { report: says('working', 600) }, 12, 'working'],
  [
    'it says that it works, and is still for 10 s',
    { turn: still(10), report: says('working', 60) },
    13,
    'idle',
    'inferred',
  ],
  ['it runs', { turn: running(5) }, 14, 'working'],
  ['it is still', { turn: still(5) }, 14, 'idle', 'inferred'],
  [
    'it has finished without a word',
    { turn: { ...still(5), value: { state: 'finished', isSilent: true } } },
    14,
    'idle',
    'no-output',
  ],
  [
    'its runner sees it run between its turns',
    { turn: still(5), agent: { ...written(1), value: 'running' } },
    14,
    'working',
  ],
  [
    'its runner sees it stand still in an open turn',
    { turn: running(5), agent: { ...written(1), value: 'still' } },
    14,
    'idle',
    'inferred',
  ],
  ['it compacts', { turn: running(5), agent: { ...written(1), value: 'compacting' } }, 14, 'working', 'compacting'],
  ['it is started again', { agent: { ...written(1), value: 'restarting' } }, 14, 'working', 'restarting'],
  ['nothing was observed for less than a minute', { session: written(59.999) }, 15, 'starting'],
  ['nothing was observed for a minute', { session: written(60), lastHeardAt: ago(60) }, 15, 'unknown'],
  ['nothing was observed, and something was told', { session: written(90), lastHeardAt: ago(59) }, 15, 'starting'],
  [
    'it says that it works, and has told nothing for 10 min',
    { report: says('working', 900), lastHeardAt: ago(600), silence: silence() },
    16,
    'working',
    'no-progress',
  ],
  [
    'it is seen to run since less than 10 min, and has told nothing for longer',
    { turn: still(900), agent: { ...written(599), value: 'running' }, lastHeardAt: ago(900), silence: silence() },
    14,
    'working',
  ],
  [
    'it compacts after it was complete',
    { turn: still(60), report: says('complete', 60), agent: { ...written(6), value: 'compacting' } },
    8,
    'working',
    'compacting',
  ],
  [
    'it runs and has told nothing for 10 min',
    { turn: running(900), lastHeardAt: ago(600), silence: silence() },
    16,
    'working',
    'no-progress',
  ],
  [
    'it runs and told something less than 10 min ago',
    { turn: running(900), lastHeardAt: ago(599.999), silence: silence() },
    14,
    'working',
  ],
  [
    'it is silent, and nobody knows yet for how long it may be',
    { turn: running(900), lastHeardAt: ago(600) },
    14,
    'working',
  ],
  [
    'its kind is silent for longer',
    { turn: running(3_000), lastHeardAt: ago(2_999), silence: silence(3_000) },
    14,
    'working',
  ],
  [
    'its processes have used the processor since',
    { turn: running(3_000), lastHeardAt: ago(2_999), silence: silence(), cpu: usedCpu(599) },
    14,
    'working',
  ],
  [
    'neither it nor its processes do anything',
    { turn: running(3_000), lastHeardAt: ago(2_999), silence: silence(), cpu: usedCpu(600) },
    16,
    'working',
    'no-progress',
  ],
  [
    'it says that it works and has told nothing for 10 min',
    { turn: running(900), report: says('working', 900), lastHeardAt: ago(600), silence: silence() },
    16,
    'working',
    'no-progress',
  ],
];

describe('the state of a session where', () => {
  it.each(ROWS)('%s', (_what, told, rule, state, note) => {
    const found = at(NOW, told);
    expect([found.evidence.rule, found.state, found.evidence.note]).toEqual([rule, state, note]);
    expect(found.evidence.observedAt).toBeLessThanOrEqual(NOW);
  });

  it('it gives no sign of life is unknown with its last state', () => {
    const found = at(NOW, { away, turn: still(300), task: tasks(2), report: says('idle', 290) });
    expect(found).toMatchObject({
      state: 'unknown',
      reason: 'its runner has gone while it waited for its tasks',
      evidence: {
        source: 'connection',
        observedAt: ago(75),
        last: 'waiting-on-background',
        report: { state: 'idle', observedAt: ago(290) },
      },
    });
  });

  it.each([
    [{ code: 137, signal: null, reason: 'exit' }, 'exit code 137'],
    [{ code: null, signal: 'SIGKILL', reason: 'exited' }, 'killed by SIGKILL'],
    [{ code: 1, signal: null, reason: 'out of memory' }, 'exit code 1: out of memory'],
    [{ code: 1, signal: null, reason: 'it ended with code 1' }, 'it ended with code 1'],
    [{ code: 0, signal: null, reason: 'the terminal was closed' }, 'the terminal was closed'],
    [{ code: 0, signal: null, reason: 'other' }, null],
  ])('it exited names its code or signal first: %o', (value, reason) => {
    expect(at(NOW, { process: { observedAt: ago(1), turnId: null, value } })).toMatchObject({ reason });
  });

  it('its runner has gone and the agent continues explains that', () => {
    const { reason } = at(NOW, { away: { ...away, agentGoesOn: true }, turn: still(300) });
    expect(reason).toBe('its runner has gone and the agent continues unseen: start the runner again');
  });

  it.each([
    [{}, 'no event or output', 900],
    [{ cpu: usedCpu(700) }, 'no event, output or processor time', 700],
    [{ silence: silence(600, 'Bash') }, 'no event or output while Bash runs', 900],
  ])('it makes no progress names the evidence: %o', (told, reason, since) => {
    const found = at(NOW, { turn: running(900), lastHeardAt: ago(900), silence: silence(), ...told });
    expect(found).toMatchObject({ reason, evidence: { observedAt: ago(since), note: 'no-progress' } });
  });

  it('its agent resumed keeps the self-report', () => {
    const { evidence } = at(NOW, { turn: { ...running(30), turnId: 'r2' }, report: says('complete', 60) });
    expect(evidence).toMatchObject({ turnId: 'r2', report: { state: 'complete', summary: 'says complete' } });
  });
});

describe('time alone', () => {
  /** The states of a session from `NOW` on without events, each with its start in seconds. */
  function states(told: Told): (string | number)[][] {
    const found: (string | number)[][] = [];
    let now: number | null = NOW;
    for (let steps = 0; now !== null; steps += 1) {
      expect(steps).toBeLessThan(20);
      const { state, evidence, dueAt } = at(now, told);
      const told16 = evidence.note === undefined || evidence.note === 'inferred' ? [] : [evidence.note];
      found.push([(now - NOW) / 1_000, state, ...told16]);
      expect(dueAt === null || dueAt > now).toBe(true);
      // Changes happen exactly when due.
      if (dueAt !== null) expect(at(dueAt - 1, told)).toEqual({ ...at(now, told), dueAt });
      now = dueAt;
    }
    expect(at(NOW + 1e9, told)).toEqual(at(NOW + 2e9, told));
    return found.filter(([, ...what], index) => what.join() !== found[index - 1]?.slice(1).join());
  }

  it.each([
    [
      'a message comes to be forgotten',
      { message: written(0), turn: still(9) },
      [
        [0, 'working', 'delivering'],
        [60, 'idle'],
      ],
    ],
    [
      'a finished agent resumes',
      { turn: running(0), report: says('complete', 60), silence: silence() },
      [
        [0, 'complete'],
        [5, 'working', 'resumed'],
        [600, 'working', 'no-progress'],
      ],
    ],
    ['a still agent waits on its tasks', { turn: still(0), task: tasks(1) }, [[0, 'waiting-on-background']]],
    [
      'what it says of its work is not believed for ever',
      { turn: still(0), report: says('working', 9) },
      [
        [0, 'working'],
        [10, 'idle'],
      ],
    ],
    [
      'it never begins',
      { session: written(0) },
      [
        [0, 'starting'],
        [60, 'unknown'],
      ],
    ],
    [
      'it makes no progress',
      { turn: running(0), silence: silence() },
      [
        [0, 'working'],
        [600, 'working', 'no-progress'],
      ],
    ],
    ['it is done', { turn: still(0), report: says('complete', 1) }, [[0, 'complete']]],
    ['it has ended', { turn: still(0), process: exited(0) }, [[0, 'exited']]],
    ['it waits for an answer', { turn: running(0), request: asked }, [[0, 'needs-input']]],
    ['it is gone', { turn: running(900), away }, [[0, 'unknown']]],
  ] satisfies [string, Told, (string | number)[][]][])('%s', (_what, told, expected) => {
    expect(states(told)).toEqual(expected);
  });

  it('clamps future times after the clock was set back', () => {
    const told = { turn: { ...still(0), observedAt: NOW + 3_600_000 }, report: says('working', 1) };
    expect(at(NOW, told)).toMatchObject({ state: 'working', dueAt: NOW + 10_000 });
  });
});
