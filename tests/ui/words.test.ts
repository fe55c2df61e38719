import { formatDuration, formatSpan } from '@interlude/protocol/time';
import { describe, expect, it } from 'vitest';
import {
  CONNECTION_EVENTS,
  CONNECTION_STATUSES,
  type ConnectionState,
  isStale,
  nextConnectionState,
} from '@/components/live/connection-state';
import { mainArgument, toolName } from '@/components/transcript/tool-words';
import { formatAgo, formatAgoLong, plural } from '@/components/ui/duration';
import { aCall } from './rows';

describe('times', () => {
  it.each([
    [-5_000, '0 s'],
    [3_999, '3 s'],
    [724_000, '12 min 4 s'],
    [780_000, '13 min 0 s'],
    [3_753_000, '1 h 2 min'],
    [86_400_000, '1 d 0 h'],
  ])('%i ms of running work are %s', (ms, shown) => expect(formatDuration(ms, true)).toBe(shown));

  it.each([
    [-1, '0.0 s'],
    [420, '0.4 s'],
    [9_960, '9 s'],
    [12_400, '12 s'],
    [60_000, '1 min'],
    [200_000, '3 min 20 s'],
    [7_500_000, '2 h 5 min'],
    [90_000_000, '1 d 1 h'],
  ])('%i ms took %s', (ms, shown) => expect(formatDuration(ms)).toBe(shown));

  it.each([
    [-60_000, 'now'],
    [4_000, 'now'],
    [12_000, '12 s'],
    [180_000, '3 min'],
    [7_200_000, '2 h'],
    [432_000_000, '5 d'],
  ])('%i ms ago is %s', (ms, shown) => expect(formatAgo(ms)).toBe(shown));

  it.each([
    [400, 'just now'],
    [7_500_000, '2 h ago'],
    [90_000_000, '1 d ago'],
  ])('%i ms ago is %s in a sentence', (ms, shown) => expect(formatAgoLong(ms)).toBe(shown));

  it.each([
    [119_000, '119 s'],
    [7_200_000, '2 h'],
    [172_800_000, '2 days'],
  ])('%i ms in a sentence is %s', (ms, shown) => expect(formatSpan(ms)).toBe(shown));

  it('counts one thing in the singular', () => {
    const counts = [0, 1, 2, 1_512].map((count) => plural(count, 'task'));
    expect(counts).toEqual(['0 tasks', '1 task', '2 tasks', '1,512 tasks']);
  });
});

describe('a tool call on one line', () => {
  it.each([
    [{ command: 'npm test\n  --watch', description: 'Run tests' }, 'npm test\n--watch'],
    [{ file_path: '/a/b.ts', old_string: 'x', new_string: 'y' }, '/a/b.ts'],
    [{ pattern: 'TODO', path: 'src' }, 'TODO'],
    [{ todos: [1, 2, 3] }, '3 items'],
    [{ limit: 5, label: 'blue' }, 'blue'],
    [{}, ''],
  ])('with %j shows %j', (args, shown) => expect(mainArgument(aCall({ args }))).toBe(shown));

  it.each([
    [['src/limits.ts'], 'src/limits.ts'],
    [['a.ts', 'a.ts'], 'a.ts'],
    [['a.ts', 'b.ts'], '2 files'],
  ])('without an informative argument shows the changed files: %j', (paths, shown) => {
    const edits = paths.map((path) => ({ path, before: '', after: 'one' }));
    expect(mainArgument(aCall({ args: {}, edits }))).toBe(shown);
  });

  it('shows the received part of streaming arguments', () => {
    expect(mainArgument(aCall({ args: null, argsText: '{"command":"grep \\"a' }))).toBe('grep "a');
    expect(mainArgument(aCall({ args: null, argsText: '{"com' }))).toBe('');
  });

  it('leaves out an argument that is shown elsewhere', () => {
    expect(mainArgument(aCall({ args: { description: 'Read', prompt: 'Look' } }), 'description')).toBe('Look');
  });

  it('names the server and its tool', () => {
    expect([toolName('mcp__github__create_issue'), toolName('Bash')]).toEqual(['github: create_issue', 'Bash']);
  });
});

describe('the connection’s state', () => {
  const live: ConnectionState = { status: 'live', since: 0, attempt: 0, asOf: null };

  it('counts failures until the page is complete again', () => {
    let state = nextConnectionState(live, 'cut', 10, 8);
    state = nextConnectionState(state, 'cut', 20, 8);
    expect(state).toEqual({ status: 'reconnecting', since: 10, attempt: 2, asOf: 8 });
    expect(nextConnectionState(state, 'up-to-date', 30, 8)).toEqual({ ...live, since: 30 });
  });

  it('updates the age of the page at each failure', () => {
    const ahead = nextConnectionState(live, 'cut', 10, 8);
    expect(nextConnectionState(ahead, 'cut', 5, 3).asOf).toBe(3);
  });

  it('keeps showing a gap when the page is up to date again', () => {
    const gap = { ...live, status: 'gap' as const };
    expect(nextConnectionState(gap, 'up-to-date', 1, 0)).toBe(gap);
    expect(nextConnectionState(gap, 'gap-shown', 1, 0).status).toBe('live');
  });

  it('leads from every state to signed-out when the cookie is refused', () => {
    for (const status of CONNECTION_STATUSES) {
      expect(nextConnectionState({ ...live, status }, 'unauthorized', 1, 0).status).toBe('signed-out');
    }
  });

  it('keeps the time of the last complete state while stale, after any event', () => {
    for (const first of CONNECTION_EVENTS) {
      for (const status of CONNECTION_STATUSES) {
        // a stale page is never complete
        const state = nextConnectionState({ ...live, status, asOf: isStale(status) ? 8 : null }, first, 10, 8);
        expect(state.asOf).toBe(isStale(state.status) ? 8 : null);
      }
    }
  });

  it('is stale from the first failure until complete, but not on a page that has just loaded', () => {
    expect(CONNECTION_STATUSES.filter(isStale)).toEqual(['reconnecting', 'signed-out']);
    const signedOut = nextConnectionState(live, 'unauthorized', 10, 8);
    expect(isStale(nextConnectionState(signedOut, 'retry', 20, 8).status)).toBe(true);
  });
});
