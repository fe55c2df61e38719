import { spawn } from 'node:child_process';
import { uptime } from 'node:os';
import { startMarkOf, startTimeOf } from '@interlude/runner/host/process-lookup';
import { describe, expect, test } from 'vitest';
import { ScriptedTerminal } from '../../support/scripted-terminal';

const [OLD, NEW] = [2_147_483_000, 2_147_483_001];

/** A session whose first process has a turn, a call and a task open. */
async function leftOpen(): Promise<ScriptedTerminal> {
  const terminal = await ScriptedTerminal.begin();
  terminal.mirror.began(terminal.claim());
  terminal.mirror.hookRan(OLD, null, terminal.now);
  await terminal.pass(1_000);
  writeOpen(terminal);
  await terminal.pass(20);
  terminal.mirror.hookRan(OLD, null, terminal.now);
  terminal.mirror.prompted(terminal.claim());
  await terminal.pass(1_000);
  return terminal;
}

function writeOpen(terminal: ScriptedTerminal): void {
  terminal.asks();
  const call = (id: string) => ({
    id: `m-${id}`,
    stop_reason: 'tool_use',
    content: [{ type: 'tool_use', id, name: 'Bash', input: {} }],
  });
  terminal.line('assistant', call('c1'));
  const content = [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }];
  terminal.line('user', { role: 'user', content }, { toolUseResult: { stdout: '', backgroundTaskId: 'b1' } });
  terminal.line('assistant', call('c2'));
}

/** How turns and tasks ended, in order. */
const ends = ({ events }: ScriptedTerminal) =>
  events.flatMap(({ type, name, outcome, value }) => {
    if (type === 'RUN_ERROR') return ['failed'];
    if (type === 'RUN_FINISHED') return [(outcome as { type: string }).type];
    if (name === 'interlude:session-ended' || name === 'session:ended') return ['session ended'];
    return name === 'task:completed' ? [(value as { status: string }).status] : [];
  });

const began = (terminal: ScriptedTerminal, at = terminal.now) => {
  terminal.mirror.hookRan(NEW, null, at);
  terminal.mirror.began(terminal.claim(at));
};
const prompts = (terminal: ScriptedTerminal) => {
  terminal.asks(terminal.now - 20);
  terminal.mirror.hookRan(NEW, null, terminal.now);
  terminal.mirror.prompted(terminal.claim());
};

/** Work of an earlier process ends within 5 s; work of the new process stays open. */
describe('a new process of a session', () => {
  test.each<[string, (terminal: ScriptedTerminal) => void | Promise<void>, turn?: string]>([
    ['that SessionStart tells of', (terminal) => began(terminal)],
    [
      'killed and resumed at once',
      async (terminal) => {
        terminal.mirror.died();
        await terminal.pass(300);
        began(terminal);
      },
    ],
    ['that only the pid of its prompt tells of', (terminal) => prompts(terminal)],
    [
      'that only the pid of a stop hook tells of',
      (terminal) => {
        terminal.mirror.hookRan(NEW, null, terminal.now);
        terminal.mirror.stopped(null, null, terminal.claim());
      },
    ],
    [
      'that is killed, found dead and goes on without SessionStart',
      async (terminal) => {
        terminal.mirror.died();
        await terminal.pass(5_000);
        prompts(terminal);
      },
      'failed',
    ],
    [
      'heard of behind the start of its own turn',
      async (terminal) => {
        const startedAt = terminal.now;
        await terminal.pass(500);
        prompts(terminal);
        await terminal.pass(500);
        began(terminal, startedAt);
      },
    ],
  ])('%s', async (_, goesOn, turn = 'cancelled') => {
    const terminal = await leftOpen();
    await terminal.pass(1_000);
    await goesOn(terminal);
    await terminal.pass(200);
    await terminal.pass(4_800);
    expect(
      ends(terminal)
        .filter((end) => end !== 'session ended')
        .slice(0, 2),
    ).toEqual([turn, 'lost']);
    // Its own turn is unaffected.
    const isOpen = terminal.mirror.openRunId !== null;
    if (!isOpen) prompts(terminal);
    terminal.says('Done');
    terminal.isOver();
    await terminal.pass(5_000);
    expect(ends(terminal).at(-1)).toBe('success');
    expect(terminal.mirror.hasEnded).toBe(false);
    expect(ends(terminal).filter((end) => end === 'lost')).toHaveLength(1);
  });

  test('closes old work at its first hook, on an unread transcript', async () => {
    const terminal = await ScriptedTerminal.begin();
    writeOpen(terminal);
    // Lines written after the start of a local process belong to it.
    terminal.now = Math.max(terminal.now, Date.now()) + 60_000;
    terminal.mirror.hookRan(process.pid, null, terminal.now);
    terminal.mirror.prompted(terminal.claim());
    await terminal.pass(2_000);
    expect(ends(terminal)).toEqual(['cancelled', 'lost']);
  });

  test('closes old work when it starts in the millisecond of the last line', async () => {
    const terminal = await ScriptedTerminal.begin();
    writeOpen(terminal);
    terminal.mirror.began(terminal.claim());
    await terminal.pass(2_000);
    expect(ends(terminal)).toEqual(['cancelled', 'lost']);
  });

  test('ignores a late hook of the old process', async () => {
    const terminal = await leftOpen();
    const before = terminal.now - 10;
    await terminal.pass(1_000);
    began(terminal);
    await terminal.pass(500);
    prompts(terminal);
    await terminal.pass(500);
    expect(terminal.mirror.hookRan(OLD, null, before)).toBe(false);
    await terminal.pass(5_000);
    expect(terminal.mirror.process?.pid).toBe(NEW);
    expect(terminal.mirror.openRunId).not.toBeNull();
  });

  test('opens no turn for late lines of the old process', async () => {
    const terminal = await leftOpen();
    const before = terminal.now;
    await terminal.pass(1_000);
    began(terminal);
    await terminal.pass(500);
    terminal.says('Late', before);
    await terminal.pass(9_000);
    expect(ends(terminal)).toEqual(['cancelled', 'lost']);
    expect(terminal.told.filter((word) => word === 'Late')).toHaveLength(1);
  });

  test('leaves a continuing process alone', async () => {
    const terminal = await leftOpen();
    for (let count = 0; count < 3; count += 1) {
      terminal.mirror.hookRan(OLD, null, terminal.now);
      await terminal.pass(5_000);
    }
    expect(ends(terminal)).toEqual([]);
  });
});

test('finds the start time of a process to a tenth of a second', async () => {
  const since = Date.now();
  const child = spawn('sleep', ['60']);
  try {
    const until = Date.now();
    const at = startTimeOf(await startMarkOf(child.pid as number)) as number;
    // Without /proc, `ps` reports whole seconds.
    expect(at).toBeGreaterThan(since - (process.platform === 'linux' ? 250 : 1_250));
    expect(at).toBeLessThanOrEqual(until);
  } finally {
    child.kill();
  }
});

test.runIf(process.platform === 'linux')(
  'a process has no known birth if the clock of a container puts it into the future',
  () => {
    const ticks = (uptime() + 3_600) * 100;
    expect(startTimeOf(`boot/${ticks}`)).toBeNull();
  },
);
