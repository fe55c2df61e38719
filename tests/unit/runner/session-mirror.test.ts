import { appendFileSync, copyFileSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { startMarkOf } from '@interlude/runner/host/process-lookup';
import { type MirrorState, newMirrorState, parseMirrorState } from '@interlude/runner/sources/hooks/mirror-state';
import { SessionMirror } from '@interlude/runner/sources/hooks/session-mirror';
import { readLines } from '@interlude/runner/sources/hooks/transcript-files';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { readTerminalRecording, type TerminalStep, writeLine } from '@/tests/support/recordings';
import { ScriptedTerminal } from '../../support/scripted-terminal';
import { tempDir } from '../../support/temp-dir';

let home: string;
let steps: TerminalStep[];
let now: number;

beforeEach(async () => {
  home = await tempDir();
  steps = readTerminalRecording('terminal-day', home);
  now = Date.parse('2026-11-20T12:00:00Z');
});

type Line = Extract<TerminalStep, { kind: 'line' }>;

function linesOf(sessionId: string): Line[] {
  return steps.filter((step): step is Line => step.kind === 'line' && step.sessionId === sessionId);
}

const firstSession = () => (steps.find((step) => step.kind === 'line') as Line).sessionId;

interface Followed {
  mirror: SessionMirror;
  events: AgUiEvent[];
  state: () => MirrorState | null;
}

function follow(sessionId: string, state: MirrorState | null = null, events: AgUiEvent[] = []): Followed {
  let stored = state;
  const mirror = new SessionMirror({
    sessionId,
    file: mainFile(sessionId),
    state,
    // Stores events and progress together, like the outbox.
    emit: (outputs, next) => {
      events.push(...outputs.map(({ event }) => event));
      stored = parseMirrorState(JSON.stringify(next));
    },
    onDelivered: () => undefined,
    onTurnEnded: () => undefined,
    log: () => undefined,
    now: () => now,
  });
  return { mirror, events, state: () => stored };
}

const mainFile = (sessionId: string) =>
  (linesOf(sessionId).find(({ file }) => file.endsWith(`${sessionId}.jsonl`)) as Line).file;

/** Events as JSON. */
const story = (events: AgUiEvent[]) => events.map((event) => JSON.stringify(event));

async function wholeStory(sessionId: string): Promise<string[]> {
  const { mirror, events } = follow(sessionId);
  for (const line of linesOf(sessionId)) {
    writeLine(line);
    await mirror.step();
  }
  return story(events);
}

describe('a mirrored transcript', () => {
  test('yields the turns, tasks and requests of a day', async () => {
    const sessionId = firstSession();
    const events = (await wholeStory(sessionId)).map((event) => JSON.parse(event) as AgUiEvent);
    const turns = events.flatMap(({ type, metadata, outcome }) => {
      if (type === 'RUN_STARTED') return [metadata?.interlude?.turn];
      return type === 'RUN_FINISHED' ? [(outcome as { type: string }).type] : [];
    });
    expect(turns).toEqual([
      ...['user', 'success', 'between-run', 'success'],
      ...['user', 'success', 'user', 'success', 'between-run', 'success'],
      ...['user', 'cancelled', 'user', 'success'],
      // /compact, which the CLI answers itself
      ...['user', 'success'],
    ]);
    const ends = events.filter(({ name }) => name === 'task:completed').map(({ value }) => value as { status: string });
    expect(ends).toMatchObject([
      { task_type: 'local_bash', status: 'failed', exit_code: 3 },
      { task_type: 'local_bash', status: 'completed', exit_code: 0 },
      { task_type: 'local_agent', status: 'completed', usage: { tool_uses: 1 } },
    ]);
    expect(events.filter(({ metadata }) => metadata?.interlude?.foldedTaskIds)).toHaveLength(1);
    expect(events.filter(({ subagentRunId }) => subagentRunId).map(({ type }) => type)).toContain('TOOL_CALL_RESULT');
    const said = events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta);
    expect(said).toContain('Tell Mara: it is done.');
    // The CLI's own lines in the user's name are not messages.
    expect(said.join('\n')).not.toMatch(
      /Stop hook feedback|being continued|local-command|command-name|task-notification/,
    );
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', result: { terminalReason: 'local_command' } });
  });

  test('emits each event once, wherever the mirror is killed', async () => {
    const sessionId = firstSession();
    const whole = await wholeStory(sessionId);
    const lines = linesOf(sessionId);
    const killedBehind = async (cut: number) => {
      for (const { file } of lines) rmSync(file, { force: true });
      const before = follow(sessionId);
      for (const line of lines.slice(0, cut)) {
        writeLine(line);
        await before.mirror.step();
      }
      const after = follow(sessionId, before.state(), before.events);
      for (const line of lines.slice(cut)) {
        writeLine(line);
        await after.mirror.step();
      }
      expect(story(after.events), `killed behind line ${cut}`).toEqual(whole);
    };
    await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: lines.length - 1 }), killedBehind), { numRuns: 24 });
  });

  test('emits lines written while no mirror ran', async () => {
    const sessionId = firstSession();
    const lines = linesOf(sessionId);
    const { mirror, state } = follow(sessionId);
    for (const line of lines.slice(0, 30)) writeLine(line);
    await mirror.step();
    for (const line of lines.slice(30)) writeLine(line);
    const after = follow(sessionId, state());
    await after.mirror.step();
    expect(after.events.filter(({ type }) => type === 'RUN_FINISHED').length).toBeGreaterThan(3);
  });

  test.each(['truncated and written again', 'replaced', 'replaced while nobody looked'])(
    'is not told twice when its file is %s',
    async (how) => {
      const sessionId = firstSession();
      const whole = await wholeStory(sessionId);
      const lines = linesOf(sessionId);
      const main = mainFile(sessionId);
      for (const { file } of lines) rmSync(file, { force: true });
      const first = follow(sessionId);
      for (const line of lines) {
        writeLine(line);
        await first.mirror.step();
      }
      let last = first;
      if (how.startsWith('truncated')) {
        const text = readFileSync(main, 'utf8');
        truncateSync(main, 10);
        await first.mirror.step();
        writeFileSync(main, text);
      } else {
        copyFileSync(main, `${main}.new`);
        renameSync(`${main}.new`, main);
        if (how.endsWith('looked')) last = follow(sessionId, first.state(), first.events);
      }
      await last.mirror.step();
      expect(story(last.events)).toEqual(whole);
      writeLine({
        file: main,
        text: JSON.stringify({ type: 'user', uuid: 'new', message: { role: 'user', content: 'More' } }),
      });
      await last.mirror.step();
      expect(story(last.events).length).toBeGreaterThan(whole.length);
    },
  );

  test('waits for the rest of a line, and marks unreadable text', async () => {
    const file = mainFile(firstSession());
    const { mirror, events } = follow(firstSession());
    writeLine({ file, text: '{"type":"user","uuid":' });
    const line = JSON.stringify({ type: 'user', uuid: 'u1', message: { role: 'user', content: 'Grüße, 世界' } });
    const bytes = Buffer.from(`${line}\n`);
    const cut = bytes.indexOf(Buffer.from('世')) + 1;
    appendFileSync(file, bytes.subarray(0, cut));
    await mirror.step();
    expect(events).toMatchObject([{ name: 'interlude:notice', value: { tone: 'warning' } }]);
    appendFileSync(file, bytes.subarray(cut));
    await mirror.step();
    expect(events.find(({ type }) => type === 'TEXT_MESSAGE_CONTENT')).toMatchObject({ delta: 'Grüße, 世界' });
  });
});

describe('events without a transcript line', () => {
  const prompt = { type: 'user', uuid: 'u1', message: { role: 'user', content: 'Go' }, origin: { kind: 'human' } };

  test('ends a turn after its stop hook once the transcript is quiet', async () => {
    const { mirror, events } = follow(firstSession());
    for (const line of [prompt, answer('Done.', 'a1')]) {
      writeLine({ file: mainFile(firstSession()), text: JSON.stringify(line) });
    }
    await mirror.step();
    mirror.stopped();
    now += 1_000;
    await mirror.step();
    expect(mirror.openRunId).not.toBeNull();
    now += 600;
    await mirror.step();
    expect(mirror.openRunId).toBeNull();
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
  });

  test('ends a turn that failed at the model API with the failure', async () => {
    const { mirror, events } = follow(firstSession());
    writeLine({ file: mainFile(firstSession()), text: JSON.stringify(prompt) });
    await mirror.step();
    mirror.stopped('529 overloaded');
    await mirror.step();
    now += 5_100;
    await mirror.step();
    expect(events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'api_error' });
    expect(events.at(-1)?.message).toContain('529 overloaded');
  });

  test('emits a command without a following line and ends its turn', async () => {
    const terminal = await ScriptedTerminal.begin();
    terminal.line('user', { role: 'user', content: '<command-name>/clear</command-name>' });
    await terminal.pass(100);
    expect(terminal.told).toEqual([]);
    await terminal.pass(1_500);
    expect(terminal.told).toEqual(['/clear', 'RUN_STARTED', 'RUN_FINISHED']);
  });

  test('returns to idle when a hook was killed', async () => {
    const { mirror } = follow(firstSession());
    mirror.prompted();
    await mirror.step();
    now += 4_900;
    await mirror.step();
    expect(mirror.selfReport).toBe('busy');
    now += 200;
    await mirror.step();
    expect(mirror.selfReport).toBe('idle');
    expect(mirror.isBusy).toBe(false);
  });

  test('ends a left session after its last text, and resumes it', async () => {
    const { mirror, events } = follow(firstSession());
    const file = mainFile(firstSession());
    writeLine({ file, text: JSON.stringify(prompt) });
    await mirror.step();
    const reason = 'the terminal session was closed';
    mirror.end(reason);
    await mirror.step();
    now += 600;
    await mirror.step();
    expect(mirror.hasEnded).toBe(true);
    expect(events.at(-1)).toMatchObject({ name: 'session:ended', value: { reason } });
    mirror.began();
    await mirror.step();
    now += 5;
    writeLine({ file, text: JSON.stringify({ ...prompt, uuid: 'u2' }) });
    await mirror.step();
    expect(mirror.hasEnded).toBe(false);
    expect(mirror.openRunId).toBe('run-u2');
  });

  const answer = (text: string, uuid: string, stop_reason: string | null = 'end_turn') => ({
    type: 'assistant',
    uuid,
    message: { id: `m-${uuid}`, stop_reason, content: [{ type: 'text', text }] },
  });
  const write = (line: object) => writeLine({ file: mainFile(firstSession()), text: JSON.stringify(line) });
  const said = (events: AgUiEvent[]) => events.flatMap(({ delta }) => (delta === undefined ? [] : [delta]));
  const ends = (events: AgUiEvent[]) =>
    events.flatMap(({ type, name }) => (type.startsWith('RUN_') ? [type] : name === 'session:ended' ? [name] : []));

  describe('a turn whose stop hook was missed', () => {
    /** A mirror killed in mid-turn; `line` is written right before the kill or afterwards. */
    async function recalled(line: object, isRead: boolean): Promise<Followed> {
      const { mirror, events, state } = follow(firstSession());
      write(prompt);
      if (isRead) write(line);
      await mirror.step();
      if (!isRead) write(line);
      now += 3_600_000;
      const after = follow(firstSession(), state(), events);
      await after.mirror.step();
      return after;
    }

    test.each([
      ['while nobody looked', false],
      ['before the mirror was killed', true],
    ])('ends once the transcript is quiet, final text %s', async (_when, isRead) => {
      const { mirror, events } = await recalled(answer('Done.', 'a1'), isRead);
      // The hook may still arrive and hold the agent.
      now += 4_900;
      await mirror.step();
      expect(mirror.isBusy).toBe(true);
      now += 200;
      await mirror.step();
      expect(said(events)).toEqual(['Go', 'Done.']);
      expect(ends(events)).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
      expect(mirror.isBusy).toBe(false);
      now += 60_000;
      await mirror.step();
      expect(ends(events)).toHaveLength(2);
    });

    test('fails when the model API failed', async () => {
      const failure = { ...answer('API Error: 529', 'a1', 'stop_sequence'), isApiErrorMessage: true };
      const { mirror, events } = await recalled(failure, false);
      now += 5_100;
      await mirror.step();
      expect(ends(events)).toEqual(['RUN_STARTED', 'RUN_ERROR']);
      expect(events.at(-1)).toMatchObject({ code: 'api_error' });
    });

    test.each([
      ['the agent is in the middle of something', answer('I look.', 'a1', 'tool_use')],
      ['a word is no last one', answer('I look', 'a1', null)],
    ])('continues when %s', async (_what, line) => {
      const { mirror, events } = await recalled(line, false);
      now += 600_000;
      await mirror.step();
      expect(ends(events)).toEqual(['RUN_STARTED']);
      expect(mirror.isBusy).toBe(true);
    });

    test('continues when a stop hook blocks the stop', async () => {
      const { mirror, events } = await recalled(answer('Done.', 'a1'), false);
      const held = { role: 'user', content: 'Stop hook feedback:\nRun the tests first.' };
      write({ type: 'user', uuid: 'f1', isMeta: true, message: held });
      await mirror.step();
      now += 600_000;
      await mirror.step();
      expect(ends(events)).toEqual(['RUN_STARTED']);
      write(answer('They pass.', 'a2'));
      await mirror.step();
      now += 5_100;
      await mirror.step();
      expect(ends(events)).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
    });

    test('continues when our hold is not in the transcript yet', async () => {
      const { mirror, events } = await recalled(answer('Done.', 'a1'), false);
      mirror.offer({ messageIds: ['m1'], reason: 'Someone waits for a reply' });
      now += 60_000;
      await mirror.step();
      expect(ends(events)).toEqual(['RUN_STARTED']);
      // The hook was killed before its response reached the transcript.
      now += 11_000;
      await mirror.step();
      expect(ends(events)).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
    });
  });

  test('keeps its process across mirrors', async () => {
    const { mirror, state } = follow(firstSession());
    write(prompt);
    mirror.hookRan(process.pid, null);
    await mirror.step();
    expect(follow(firstSession(), state()).mirror.process).toEqual({
      pid: process.pid,
      birth: await startMarkOf(process.pid),
    });
  });

  describe('a session left while its stop hook is in transit', () => {
    test('finishes its turn when the hook arrives after the end', async () => {
      const { mirror, events } = follow(firstSession());
      write(prompt);
      write(answer('Done.', 'a1'));
      await mirror.step();
      mirror.end('the terminal session was closed');
      now += 300;
      await mirror.step();
      mirror.stopped();
      now += 600;
      await mirror.step();
      expect(ends(events)).toEqual(['RUN_STARTED', 'RUN_FINISHED', 'session:ended']);
      expect(said(events)).toEqual(['Go', 'Done.']);
    });

    test('finishes its turn without the hook once the final text is there', async () => {
      const { mirror, events } = follow(firstSession());
      write(prompt);
      write(answer('Done.', 'a1'));
      await mirror.step();
      mirror.end('the terminal session was closed');
      now += 600;
      await mirror.step();
      expect(ends(events)).toEqual(['RUN_STARTED', 'RUN_FINISHED', 'session:ended']);
      mirror.stopped();
      await mirror.step();
      expect(mirror.hasEnded).toBe(true);
      expect(mirror.isBusy).toBe(false);
      expect(ends(events)).toHaveLength(3);
    });

    const left = (mirror: SessionMirror) => mirror.end('the terminal session was closed');
    const died = (mirror: SessionMirror) => mirror.died();
    const CANCELLED = { type: 'RUN_FINISHED', outcome: { type: 'cancelled' } };
    const FAILED = { type: 'RUN_ERROR', code: 'agent_exited' };

    test.each<[string, string, (mirror: SessionMirror) => void, object]>([
      ['it was left', 'heard that', left, CANCELLED],
      ['it was left', 'comes after a kill', left, CANCELLED],
      ['its process died', 'heard that', died, FAILED],
      ['its process died', 'comes after a kill', died, FAILED],
    ])('was interrupted when %s, in the mirror that %s', async (_how, who, end, outcome) => {
      const { mirror, events, state } = follow(firstSession());
      write(prompt);
      write(answer('I look.', 'a1', 'tool_use'));
      await mirror.step();
      end(mirror);
      await mirror.step();
      const last = who === 'heard that' ? mirror : follow(firstSession(), state(), events).mirror;
      await last.step();
      now += 600;
      await last.step();
      expect(ends(events)).toEqual(['RUN_STARTED', expect.stringMatching(/^RUN_/), 'session:ended']);
      expect(events.find(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')).toMatchObject(outcome);
    });

    test('emits late final texts without becoming busy', async () => {
      const { mirror, events } = follow(firstSession());
      write(prompt);
      await mirror.step();
      mirror.end('the terminal session was closed');
      now += 600;
      await mirror.step();
      expect(mirror.isFinal).toBe(false);
      write(answer('Done, late.', 'a1'));
      await mirror.step();
      mirror.stopped();
      await mirror.step();
      expect(said(events)).toEqual(['Go', 'Done, late.']);
      expect(mirror.openRunId).toBeNull();
      expect(mirror.hasEnded).toBe(true);
      expect(ends(events)).toEqual([
        ...['RUN_STARTED', 'RUN_FINISHED', 'session:ended'],
        ...['RUN_STARTED', 'RUN_FINISHED', 'session:ended'],
      ]);
      now += 10_000;
      await mirror.step();
      expect(mirror.isFinal).toBe(true);
    });
  });

  test('keeps an open terminal request across mirrors', async () => {
    const sessionId = firstSession();
    const file = mainFile(sessionId);
    const input = { command: 'ls' };
    const call = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input };
    const first = follow(sessionId);
    writeLine({ file, text: JSON.stringify(prompt) });
    await first.mirror.step();
    first.mirror.requestOpened('Bash', input, { title: 'Use Bash: answer it in the terminal' });
    await first.mirror.step();
    expect(first.events.some(({ name }) => name === 'request:opened')).toBe(false);
    writeLine({ file, text: JSON.stringify({ type: 'assistant', uuid: 'a1', message: { id: 'm', content: [call] } }) });
    await first.mirror.step();
    expect(first.events.find(({ name }) => name === 'request:opened')).toMatchObject({
      value: { request_id: 'toolu_1' },
    });
    const after = follow(sessionId, first.state(), first.events);
    const result = [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.txt' }];
    writeLine({ file, text: JSON.stringify({ type: 'user', uuid: 'r1', message: { role: 'user', content: result } }) });
    await after.mirror.step();
    expect(after.events.filter(({ name }) => name?.toString().startsWith('request:'))).toMatchObject([
      { name: 'request:opened' },
      { name: 'request:resolved', value: { request_id: 'toolu_1', outcome: 'allowed' } },
    ]);
  });
});

describe('a turn whose stop hook is ahead of its transcript', () => {
  const at = (ms: number) => new Date(ms).toISOString();
  const write = (line: object) => writeLine({ file: mainFile(firstSession()), text: JSON.stringify(line) });
  const prompt = (uuid: string, text = 'Go', madeAt = now) =>
    write({
      type: 'user',
      uuid,
      timestamp: at(madeAt),
      message: { role: 'user', content: text },
      origin: { kind: 'human' },
    });
  /** Writes a line of the agent. @param madeAt its timestamp */
  const says = (uuid: string, text: string, madeAt: number, stop_reason = 'end_turn') =>
    write({
      ...{ type: 'assistant', uuid, timestamp: at(madeAt) },
      message: { id: `m-${uuid}`, stop_reason, content: [{ type: 'text', text }] },
    });
  const interrupted = (uuid: string, madeAt: number) => {
    const content = [{ type: 'text', text: '[Request interrupted by user]' }];
    write({ type: 'user', uuid, timestamp: at(madeAt), message: { role: 'user', content } });
  };
  const over = () =>
    write({ type: 'system', subtype: 'turn_duration', uuid: `o${now}`, timestamp: at(now), durationMs: 5 });
  const pass = async (mirror: SessionMirror, ms: number) => {
    now += ms;
    await mirror.step();
  };
  /** Runs, what the agent said, and the session's end, in order. */
  const told = (events: AgUiEvent[]) =>
    events.flatMap(({ type, delta, name, metadata }) => {
      if (type === 'RUN_FINISHED') return [`${type} ${metadata?.interlude?.userMessageIds}`];
      if (type.startsWith('RUN_')) return [type];
      if (name === 'session:ended') return [name];
      return typeof delta === 'string' ? [delta] : [];
    });

  async function stopped(text: string | null = 'Done.'): Promise<Followed> {
    const followed = follow(firstSession());
    prompt('u1');
    await pass(followed.mirror, 1_000);
    followed.mirror.stopped(null, text);
    await followed.mirror.step();
    return followed;
  }

  test('stays open until its final text arrives', async () => {
    const { mirror, events } = await stopped();
    const hookAt = now;
    await pass(mirror, 3_000);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED']);
    expect(mirror.selfReport).toBe('idle');
    says('a1', 'Done.', hookAt - 100);
    await mirror.step();
    await pass(mirror, 1_600);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'Done.', 'RUN_FINISHED u1']);
  });

  test.each([
    ['as the hook had them', 'Done.\n\nAll of it.'],
    ['with other blank space', ' Done.\r\nAll of it. \n'],
  ])('ends with the text of the hook and drops the late line, %s', async (_how, line) => {
    const { mirror, events } = await stopped('Done.\n\nAll of it.');
    const hookAt = now;
    await pass(mirror, 4_900);
    expect(told(events)).not.toContain('RUN_FINISHED u1');
    await pass(mirror, 200);
    const whole = ['Go', 'RUN_STARTED', 'Done.\n\nAll of it.', 'RUN_FINISHED u1'];
    expect(told(events)).toEqual(whole);
    says('a1', line, hookAt - 100);
    over();
    await pass(mirror, 10_000);
    expect(told(events)).toEqual(whole);
    // an equal text in the next turn belongs to that turn
    prompt('u2', 'Again');
    says('a2', 'Done.\n\nAll of it.', now + 5);
    over();
    await pass(mirror, 10);
    expect(told(events).slice(whole.length)).toEqual([
      ...['Again', 'RUN_STARTED', 'Done.\n\nAll of it.', 'RUN_FINISHED u2'],
    ]);
  });

  test('stays open for the final text although the hook had none', async () => {
    const { mirror, events } = await stopped(null);
    const hookAt = now;
    await pass(mirror, 3_000);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED']);
    says('a1', 'Done.', hookAt - 100);
    await mirror.step();
    await pass(mirror, 1_600);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'Done.', 'RUN_FINISHED u1']);
  });

  test('ends eventually without any final text', async () => {
    const { mirror, events } = await stopped(null);
    await pass(mirror, 12_100);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'RUN_FINISHED u1']);
  });

  test.each([
    ['none of them', 0],
    ['the first of them', 1],
  ])('emits each of several blocks once when %s was on time', async (_which, inTime) => {
    const { mirror, events } = await stopped('Part one.\n\nPart two.');
    const hookAt = now;
    const blocks = ['Part one.', 'Part two.'];
    const write = (from: number, to?: number) => {
      for (const text of blocks.slice(from, to)) says(`a-${text}`, text, hookAt - 100);
    };
    write(0, inTime);
    await mirror.step();
    await pass(mirror, 5_100);
    write(inTime);
    over();
    await pass(mirror, 10_000);
    const words = told(events)
      .filter((line) => line.startsWith('Part'))
      .join('\n\n');
    expect(words).toBe('Part one.\n\nPart two.');
    expect(told(events).at(-1)).toBe('RUN_FINISHED u1');
  });

  test('is complete after two equal texts in a row', async () => {
    const { mirror, events } = await stopped('OK\n\nOK');
    says('a1', 'OK', now - 100);
    says('a2', 'OK', now - 100);
    await mirror.step();
    await pass(mirror, 1_600);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'OK', 'OK', 'RUN_FINISHED u1']);
  });

  test('emits later lines outside any turn', async () => {
    const { mirror, events } = await stopped();
    const hookAt = now;
    await pass(mirror, 5_100);
    const call = { type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } };
    const message = { id: 'm-c1', stop_reason: 'tool_use', content: [call] };
    says('a1', 'I look.', hookAt - 300, 'tool_use');
    write({ type: 'assistant', uuid: 'c1', timestamp: at(hookAt - 290), message });
    const content = [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.txt' }];
    write({ type: 'user', uuid: 'r1', timestamp: at(hookAt - 200), message: { role: 'user', content } });
    says('a2', 'Done.', hookAt - 100);
    await pass(mirror, 10_000);
    expect(told(events).filter((line) => line.startsWith('RUN_'))).toEqual(['RUN_STARTED', 'RUN_FINISHED u1']);
    expect(told(events).filter((line) => line === 'Done.')).toHaveLength(1);
    expect(told(events)).toContain('I look.');
    expect(events.map(({ type }) => type)).toContain('TOOL_CALL_RESULT');
  });

  test.each(['held', 'closed by the hook’s word'])(
    'is the same for the mirror after one that was killed, %s',
    async (when) => {
      const before = await stopped();
      const hookAt = now;
      if (when !== 'held') await pass(before.mirror, 5_100);
      now += 3_600_000;
      const { mirror, events } = follow(firstSession(), before.state(), before.events);
      await mirror.step();
      const whole = ['Go', 'RUN_STARTED', 'Done.', 'RUN_FINISHED u1'];
      expect(told(events)).toEqual(whole);
      says('a1', 'Done.', hookAt - 100);
      over();
      await pass(mirror, 10_000);
      expect(told(events)).toEqual(whole);
    },
  );

  test('has a line written between two mirrors', async () => {
    const before = await stopped();
    says('a1', 'Done.', now - 100);
    now += 3_600_000;
    const { mirror, events } = follow(firstSession(), before.state(), before.events);
    await mirror.step();
    await pass(mirror, 1_600);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'Done.', 'RUN_FINISHED u1']);
  });

  test('ends soon after the next prompt with the text of the hook', async () => {
    const { mirror, events } = await stopped();
    mirror.prompted();
    await pass(mirror, 3_000);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'Done.', 'RUN_FINISHED u1']);
    expect(mirror.isBusy).toBe(true);
  });

  test('has all blocks that are two seconds late despite the next prompt', async () => {
    const { mirror, events } = await stopped();
    const hookAt = now;
    mirror.prompted();
    await pass(mirror, 2_000);
    says('a1', 'I look.', hookAt - 300, '');
    says('a2', 'Done.', hookAt - 100);
    over();
    await mirror.step();
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'I look.', 'Done.', 'RUN_FINISHED u1']);
  });

  test('ends with its text when the transcript has the next prompt', async () => {
    const { mirror, events } = await stopped();
    now += 100;
    prompt('u2', 'And?');
    await mirror.step();
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'Done.', 'RUN_FINISHED u1', 'And?', 'RUN_STARTED']);
    // the stop hook belonged to the first turn
    await pass(mirror, 60_000);
    expect(mirror.openRunId).toBe('run-u2');
  });

  test('ends with its session and keeps the text of the hook', async () => {
    const { mirror, events } = await stopped();
    now += 100;
    mirror.end('the terminal session was closed');
    await pass(mirror, 2_900);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED']);
    await pass(mirror, 200);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'Done.', 'RUN_FINISHED u1', 'session:ended']);
  });

  test('keeps its text when interrupted meanwhile', async () => {
    const { mirror, events } = await stopped();
    now += 100;
    interrupted('i1', now);
    await mirror.step();
    expect(told(events).slice(0, 3)).toEqual(['Go', 'RUN_STARTED', 'Done.']);
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
  });

  test('continues when another hook blocks the stop, even before an equal text', async () => {
    const { mirror, events } = await stopped();
    says('a1', 'Done.', now - 100);
    const held = { role: 'user', content: 'Stop hook feedback:\nRun the tests first.' };
    write({ type: 'user', uuid: 'f1', isMeta: true, timestamp: at(now), message: held });
    await mirror.step();
    await pass(mirror, 60_000);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'Done.']);
    mirror.stopped(null, 'Done.');
    await pass(mirror, 2_000);
    expect(told(events)).toHaveLength(3);
    await pass(mirror, 3_100);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'Done.', 'Done.', 'RUN_FINISHED u1']);
  });

  test('keeps the text of the hook when a second call lacks it', async () => {
    const { mirror, events } = await stopped();
    mirror.stopped();
    await pass(mirror, 5_100);
    expect(told(events)).toContain('Done.');
  });

  test('is not confused with the next turn when the hook is slow', async () => {
    const { mirror, events } = follow(firstSession());
    prompt('u1');
    says('a1', 'Done.', now + 10);
    now += 20;
    over();
    await mirror.step();
    mirror.stopped(null, 'Done.');
    now += 300;
    prompt('u2', 'And?');
    await mirror.step();
    await pass(mirror, 60_000);
    expect(mirror.openRunId).toBe('run-u2');
    expect(told(events).filter((line) => line === 'Done.')).toHaveLength(1);
  });

  test.each([
    ['right', 0, false],
    ['days off', 2 * 86_400_000, false],
    ['days off, and another reader since', 2 * 86_400_000, true],
  ])('gets its hook that arrives during a later turn, clocks %s', async (_how, off, isAnother) => {
    const first = follow(firstSession());
    const turn = (id: string, text: string) => {
      now -= off;
      prompt(`u${id}`, 'Go');
      says(`a${id}`, text, now + 10);
      now += 20;
      over();
      now += off;
    };
    turn('1', 'One.');
    turn('2', 'Two.');
    now -= off;
    prompt('u3', 'And?');
    now += off;
    await pass(first.mirror, 100);
    const { mirror, events } = isAnother ? follow(firstSession(), first.state(), first.events) : first;
    await mirror.step();
    for (const text of ['One.', 'Two.']) {
      mirror.stopped(null, text);
      await pass(mirror, 10);
      mirror.prompted();
    }
    await pass(mirror, 3_000);
    expect(mirror.openRunId).toBe('run-u3');
    // it ends by its own hook, whose text repeats an earlier one
    says('a3', 'One.', now - off);
    mirror.stopped(null, 'One.');
    await mirror.step();
    await pass(mirror, 1_600);
    const said = told(events).filter((line) => !/^(Go|And\?|RUN_STARTED)$/.test(line));
    expect(said).toEqual(['One.', 'RUN_FINISHED u1', 'Two.', 'RUN_FINISHED u2', 'One.', 'RUN_FINISHED u3']);
  });

  test.each(['before', 'behind'])(
    'is told once, where its hook comes %s its end and the clocks disagree by days',
    async (when) => {
      const { mirror, events } = follow(firstSession());
      const days = 2 * 86_400_000;
      for (const [prompted, answered, text] of [
        ['u1', 'a1', 'One.'],
        ['u2', 'a2', 'Two.'],
        ['u3', 'a3', 'Two.'],
      ] as const) {
        now -= days;
        prompt(prompted, 'Go');
        now += days;
        await pass(mirror, 100);
        if (when === 'before') mirror.stopped(null, text);
        await mirror.step();
        says(answered, text, now - days);
        now -= days;
        over();
        now += days;
        await pass(mirror, 100);
        if (when === 'behind') mirror.stopped(null, text);
        await pass(mirror, 100);
      }
      await pass(mirror, 10_000);
      expect(told(events).filter((line) => !/^(Go|RUN_STARTED)$/.test(line))).toEqual([
        ...['One.', 'RUN_FINISHED u1', 'Two.', 'RUN_FINISHED u2', 'Two.', 'RUN_FINISHED u3'],
      ]);
    },
  );

  test.each(['heard of', 'not heard of'])(
    'has its own, where the next turn has ended as well before a line says that it began, its prompt %s',
    async (prompted) => {
      const { mirror, events } = await stopped('First.');
      says('a1', 'First.', now - 100);
      await pass(mirror, 300);
      const wokenAt = now;
      if (prompted === 'heard of') mirror.prompted();
      now += 400;
      mirror.stopped(null, 'Second.');
      await mirror.step();
      // without a terminal, only the next prompt ends the previous turn
      const text = '<task-notification>\n<task-id>t1</task-id>\n<status>completed</status>\n</task-notification>';
      const message = { role: 'user', content: text };
      write({ type: 'user', uuid: 'u2', timestamp: at(wokenAt), message, origin: { kind: 'task-notification' } });
      await pass(mirror, 100);
      expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'First.', 'RUN_FINISHED u1', 'RUN_STARTED']);
      says('a2', 'Second.', wokenAt + 200);
      await pass(mirror, 100);
      await pass(mirror, 1_600);
      expect(told(events).slice(-3)).toEqual(['RUN_STARTED', 'Second.', 'RUN_FINISHED ']);
    },
  );

  test('is not confused with the previous turn when the transcript lags by more than a turn', async () => {
    const { mirror, events } = follow(firstSession());
    prompt('u1');
    await mirror.step();
    const [endAt, nextAt] = [now + 10, now + 20];
    now += 1_000;
    mirror.stopped(null, 'Second.');
    await mirror.step();
    says('a1', 'First.', endAt - 5);
    write({ type: 'system', subtype: 'turn_duration', uuid: 'o1', timestamp: at(endAt), durationMs: 5 });
    const message = { role: 'user', content: 'And?' };
    write({ type: 'user', uuid: 'u2', timestamp: at(nextAt), message, origin: { kind: 'human' } });
    await pass(mirror, 100);
    await pass(mirror, 5_000);
    expect(told(events)).toEqual([
      ...['Go', 'RUN_STARTED', 'First.', 'RUN_FINISHED u1'],
      ...['And?', 'RUN_STARTED', 'Second.', 'RUN_FINISHED u2'],
    ]);
  });

  test.each(['the same mirror', 'another mirror since'])(
    'is not the interrupted one, whose last line is late: %s',
    async (which) => {
      const first = follow(firstSession());
      prompt('u0');
      says('a0', 'A', now + 10, 'tool_use');
      await pass(first.mirror, 200);
      const interruptedAt = now;
      now += 100;
      first.mirror.prompted();
      const promptedAt = now;
      await pass(first.mirror, 200);
      const { mirror, events } =
        which === 'the same mirror' ? first : follow(firstSession(), first.state(), first.events);
      mirror.stopped(null, 'B');
      await pass(mirror, 200);
      mirror.prompted();
      await pass(mirror, 2_000);
      expect(mirror.openRunId).toBe('run-u0');
      interrupted('i0', interruptedAt);
      prompt('u1', 'Go', promptedAt + 3);
      says('a1', 'B', promptedAt + 100);
      await pass(mirror, 10);
      await pass(mirror, 5_000);
      expect(told(events)).toEqual([
        ...['Go', 'RUN_STARTED', 'A', 'RUN_FINISHED u0'],
        ...['Go', 'RUN_STARTED', 'B', 'RUN_FINISHED u1'],
      ]);
      const outcomes = events.flatMap(({ type, outcome }) => (type === 'RUN_FINISHED' ? [outcome] : []));
      expect(outcomes).toMatchObject([{ type: 'cancelled' }, { type: 'success' }]);
    },
  );

  test.each([
    ['heard', true],
    ['not heard', false],
  ])('waits for a turn that is not in the transcript yet, prompt %s', async (_how, isHeard) => {
    const { mirror, events } = follow(firstSession());
    const first = now;
    if (isHeard) mirror.prompted();
    await pass(mirror, 500);
    mirror.stopped(null, 'A');
    await pass(mirror, 1_800);
    const second = now;
    if (isHeard) mirror.prompted();
    await pass(mirror, 500);
    mirror.stopped(null, 'B');
    await pass(mirror, 100);
    prompt('u0', 'Go', first + 3);
    says('a0', 'A', first + 400);
    await pass(mirror, 10);
    await pass(mirror, 1_600);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'A', 'RUN_FINISHED u0']);
    prompt('u1', 'Go', second + 3);
    says('a1', 'B', second + 400);
    await pass(mirror, 10);
    await pass(mirror, 1_600);
    expect(told(events).slice(4)).toEqual(['Go', 'RUN_STARTED', 'B', 'RUN_FINISHED u1']);
  });

  test('gets no text of the next turn when its hook is late', async () => {
    const { mirror, events } = follow(firstSession());
    prompt('u0');
    await mirror.step();
    now += 1_000;
    // the next lines were written before the hook arrived, and are read after its wait
    const writtenAt = now - 200;
    mirror.stopped(null, 'A');
    mirror.prompted();
    await pass(mirror, 5_100);
    expect(told(events)).toEqual(['Go', 'RUN_STARTED', 'A', 'RUN_FINISHED u0']);
    says('a0', 'A', writtenAt - 300);
    prompt('u1', 'Go', writtenAt);
    says('a1', 'B', writtenAt + 100);
    await mirror.step();
    mirror.stopped(null, 'B');
    await pass(mirror, 5_100);
    expect(told(events).slice(4)).toEqual(['Go', 'RUN_STARTED', 'B', 'RUN_FINISHED u1']);
  });

  test.each(['the words', 'the words and the call'])(
    'has called a tool between words and the same words, with %s in time',
    async (inTime) => {
      const { mirror, events } = await stopped('OK');
      const hookAt = now;
      const call = () => {
        const content = [{ type: 'tool_use', id: 'toolu_1', name: 'Bash', input: { command: 'ls' } }];
        const message = { id: 'm-c1', stop_reason: 'tool_use', content };
        write({ type: 'assistant', uuid: 'c1', timestamp: at(hookAt - 200), message });
      };
      // older versions omit the stop reason while it is unknown
      says('a1', 'OK', hookAt - 300, inTime === 'the words' ? 'tool_use' : '');
      if (inTime !== 'the words') call();
      await mirror.step();
      await pass(mirror, 2_500);
      expect(mirror.openRunId).toBe('run-u1');
      if (inTime === 'the words') call();
      const content = [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'a.txt' }];
      write({ type: 'user', uuid: 'r1', timestamp: at(hookAt - 150), message: { role: 'user', content } });
      says('a2', 'OK', hookAt - 100);
      await mirror.step();
      await pass(mirror, 1_600);
      expect(told(events).filter((line) => line === 'OK')).toHaveLength(2);
      expect(told(events).at(-1)).toBe('RUN_FINISHED u1');
      expect(events.map(({ type }) => type).indexOf('TOOL_CALL_RESULT')).toBeLessThan(events.length - 2);
    },
  );

  test.each([
    ...[0, 900, 3_000, 8_000].map((behindMs) => [behindMs, 'name no'] as const),
    ...[900, 3_000].map((behindMs) => [behindMs, 'name their'] as const),
  ])('yields the same day with lines %i ms late and hooks %s prompts', async (behindMs, how) => {
    const sessionId = firstSession();
    const byText = (events: AgUiEvent[]) =>
      events
        .filter(({ subagentRunId }) => subagentRunId === undefined)
        .flatMap(({ type, delta, outcome, metadata }) => {
          if (type === 'TEXT_MESSAGE_CONTENT') return [String(delta)];
          if (type === 'RUN_STARTED') return [`${metadata?.interlude?.turn} turn`];
          return type === 'RUN_FINISHED' ? [(outcome as { type: string }).type] : [];
        });
    const whole = byText((await wholeStory(sessionId)).map((event) => JSON.parse(event) as AgUiEvent));
    for (const { file } of linesOf(sessionId)) rmSync(file, { force: true });
    const { mirror, events } = follow(sessionId);
    for (const [index, step] of steps.entries()) {
      const input = step.kind === 'hook' ? step.input : null;
      if (step.kind === 'line' && step.sessionId === sessionId) {
        const { timestamp } = JSON.parse(step.text) as { timestamp?: string };
        if (timestamp !== undefined) now = Math.max(now, Date.parse(timestamp));
        writeLine(step);
      }
      // a held agent continues without a prompt
      const next = steps
        .slice(index + 1)
        .find((one) => one.kind === 'line' && /"type":"(user|assistant)"/.test(one.text));
      if (input?.hook_event_name === 'Stop' && input.session_id === sessionId && next?.kind === 'line') {
        now = Math.max(now, Date.parse((JSON.parse(next.text) as { timestamp: string }).timestamp)) + 5;
        const promptId = how === 'name their' ? String(input.prompt_id) : null;
        mirror.stopped(null, String(input.last_assistant_message), { at: null, promptId });
        await mirror.step();
        await pass(mirror, behindMs);
      }
      await mirror.step();
    }
    await pass(mirror, 10_000);
    const isHeldOnce = behindMs < 5_000;
    if (isHeldOnce) expect(byText(events)).toEqual(whole);
    // the lines of the holding hook came too late, so its turn is split in two
    else for (const text of whole) expect(byText(events)).toContain(text);
    const texts = byText(events).filter((text) => text.endsWith('.'));
    expect(new Set(texts).size).toBe(texts.length);
  });
});

test('reads a file in complete lines of any length', async () => {
  const file = join(home, 'long.jsonl');
  expect(await readLines(file, null)).toBeNull();
  const long = 'x'.repeat(9 * 1024 * 1024);
  writeFileSync(file, `a\n${long}\nb\nrest`);
  const lines: string[] = [];
  for (let read = await readLines(file, null); read !== null; read = await readLines(file, read.position)) {
    lines.push(...read.lines.map(({ text }) => text));
    if (!read.more) break;
  }
  expect(lines.map(({ length }) => length)).toEqual([1, long.length, 1]);
});

test.each(['', 'null', '[]', '{"file":1}', '{"file":"f","main":{"ino":"x"},"asks":7,"subagents":[]}'])(
  'a stored place that is not one (%j) begins anew or with what is whole in it',
  (text) => {
    expect([null, newMirrorState('f')]).toContainEqual(parseMirrorState(text));
  },
);

test('takes the Claude Code version from the newest line', async () => {
  const terminal = await ScriptedTerminal.begin();
  expect(terminal.mirror.provider).toBeNull();
  terminal.line('user', { role: 'user', content: 'Go' }, { version: '2.1.328', origin: { kind: 'human' } });
  terminal.line('assistant', { role: 'assistant', content: [] }, { version: '2.1.329' });
  terminal.line('user', { role: 'user', content: 'On' }, { version: 7, origin: { kind: 'human' } });
  await terminal.mirror.step();
  expect(terminal.mirror.provider).toBe('Claude Code 2.1.329');
});
