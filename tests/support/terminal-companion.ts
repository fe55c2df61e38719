import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { MessageItem, SessionDetail, Turn } from '@interlude/protocol/read-models';
import { controlPath, readControlFile } from '@interlude/runner/host/control-file';
import { RunnerHost } from '@interlude/runner/host/runner-host';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { HooksSource } from '@interlude/runner/sources/hooks/hooks-source';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { startCli } from './cli';
import { writeLine } from './recordings';
import { serveOverHttp } from './serve-over-http';
import { inProcessServer, type ServerTarget } from './server-target';
import { tempDir } from './temp-dir';
import { WAIT_MS } from './timeouts';

type CompanionOptions = Partial<Parameters<typeof HooksSource.open>[0]>;

interface Terminal {
  home: string;
  /** Starts a companion unless one is running. */
  connect(): Promise<void>;
  disconnect(): Promise<void>;
  /**
   * Runs a hook.
   *
   * @param pid process that runs the hook; default: this one
   * @param within seconds until its timeout
   */
  hook(event: string, input: Record<string, unknown>, pid?: number, within?: number): Promise<string>;
  /** Pending replies according to the companion. */
  obligations(): Promise<unknown>;
}

/**
 * Scripted terminals (hooks and transcript lines) with the real companion, on a server for this test file.
 *
 * @returns `server()` is available once the file's tests run
 */
export function scriptedTerminals() {
  let target: ServerTarget;
  let http: Awaited<ReturnType<typeof serveOverHttp>>;
  beforeAll(async () => {
    target = await inProcessServer();
    http = await serveOverHttp(target);
  });
  afterAll(async () => {
    await http.close();
    await target.close();
  });
  const server = () => target;

  async function terminal(agentId: string = randomUUID(), how: CompanionOptions = {}): Promise<Terminal> {
    const home = await tempDir();
    const controlFile = controlPath(home, 'hooks');
    const endpoint = async () => ({ url: http.url, token: target.token });
    let close: (() => Promise<void>) | null = null;
    const one: Terminal = {
      home,
      async connect() {
        const host = await RunnerHost.open({
          about: { kind: 'hooks', source: 'claude-terminal', agentGoesOn: true },
          ...{ meanwhile: 'the agent continues', journal: 'hooks', hasManySessions: true },
          openOutbox: (listeners) => Outbox.open(join(home, 'outbox.db'), { agentId, ...listeners }),
          ...{ endpoint, dataDir: home, level: undefined },
          controlFile: () => controlFile,
        });
        await host.start((surroundings) => HooksSource.open({ context: surroundings, logger: host.logger, ...how }));
        close = async () => void (await host.close(0, 5_000));
      },
      async disconnect() {
        const closing = close;
        close = null;
        await closing?.();
      },
      async hook(event, input, pid = process.pid, within = 0) {
        const control = await readControlFile(controlFile);
        const headers = { authorization: `Bearer ${control?.secret}` };
        // A session starts before its first prompt: lines of the same millisecond count as older.
        const at = event === 'SessionStart' ? `&at=${Date.now() - 100}` : '';
        const response = await fetch(`${control?.url}/hooks/${event}?pid=${pid}&within=${within}${at}`, {
          method: 'POST',
          headers,
          body: JSON.stringify(input),
        });
        expect(response.status).toBe(200);
        return await response.text();
      },
      async obligations() {
        const control = await readControlFile(controlFile);
        const headers = { authorization: `Bearer ${control?.secret}` };
        return await (await fetch(`${control?.url}/reply-obligations`, { headers })).json();
      },
    };
    onTestFinished(() => one.disconnect());
    await one.connect();
    return one;
  }

  const read = async (path: string) => (await target.get(`/api/v1${path}`)).json();
  const turnsOf = async (sessionId: string): Promise<Turn[]> =>
    ((await read(`/sessions/${sessionId}/transcript?limit=100`)) as { turns?: Turn[] }).turns ?? [];
  const texts = (turns: readonly Turn[]) =>
    turns.flatMap(({ items }) =>
      items.filter((item): item is MessageItem => item.kind === 'message').map(({ text }) => text),
    );

  async function post(path: string, body: object, status = 202): Promise<Record<string, string>> {
    const headers = { authorization: `Bearer ${target.token}`, 'content-type': 'application/json' };
    const response = await target.send(`/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    expect(response.status).toBe(status);
    return (await response.json()) as Record<string, string>;
  }

  async function eventually<Found>(look: () => Promise<Found | null | undefined | false>): Promise<Found> {
    for (const deadline = Date.now() + WAIT_MS; ; ) {
      const found = await look();
      if (found) return found;
      if (Date.now() > deadline) throw new Error(`timed out: ${look}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** A terminal session in a turn. */
  async function atWork(agentId?: string, pid?: number, how?: CompanionOptions) {
    const one = await terminal(agentId, how);
    const sessionId = randomUUID();
    const file = join(one.home, `${sessionId}.jsonl`);
    const say = (line: object) =>
      writeLine({ file, text: JSON.stringify({ uuid: randomUUID(), entrypoint: 'cli', ...line }) });
    const hook = (event: string, more: object = {}, within = 0) =>
      one.hook(event, { session_id: sessionId, transcript_path: file, hook_event_name: event, ...more }, pid, within);
    const assistant = (text: string, stop_reason: string | null = null) =>
      say({
        type: 'assistant',
        message: { id: `msg_${randomUUID()}`, stop_reason, content: [{ type: 'text', text }] },
      });
    const prompt = (text: string) =>
      say({ type: 'user', message: { role: 'user', content: text }, origin: { kind: 'human' } });
    await hook('SessionStart', { source: 'startup' });
    await hook('UserPromptSubmit', { prompt: 'Build it' });
    prompt('Build it');
    await eventually(async () => texts(await turnsOf(sessionId)).includes('Build it'));
    return { ...one, sessionId, say, hook, assistant, prompt };
  }

  return { server, terminal, atWork, read, turnsOf, texts, post, eventually };
}

export const messagesOf = (turns: readonly Turn[]) =>
  turns.flatMap(({ items }) => items.filter((item): item is MessageItem => item.kind === 'message'));

/** Idle terminals with the real companion. Their agents may wait for messages with `interlude wait`. */
export function idleTerminals() {
  const played = scriptedTerminals();
  const { atWork, read, turnsOf, post, eventually } = played;

  /** A terminal after its turn. */
  async function atRest() {
    const agentId = randomUUID();
    const one = await atWork(agentId, undefined, { offersToListen: true });
    const { sessionId, home, hook, assistant, say } = one;
    const rest = async () => {
      assistant('It is built.', 'end_turn');
      expect(await hook('Stop', { stop_hook_active: true })).toBe('');
      say({ type: 'system', subtype: 'turn_duration', durationMs: 9 });
      await eventually(async () => (await turnsOf(sessionId)).every(({ state }) => state !== 'open'));
    };
    await rest();
    const send = async (text: string) =>
      (await post(`/sessions/${sessionId}/messages`, { text, clientId: text })).messageId as string;
    const message = async (id: string) => messagesOf(await turnsOf(sessionId)).find((item) => item.id === id);
    const isWakeable = async () => ((await read(`/sessions/${sessionId}`)) as SessionDetail).session.wakeable === true;
    /** Starts `interlude wait` in a separate turn. */
    const listen = async () => {
      await hook('UserPromptSubmit', { prompt: 'Listen' });
      one.prompt('Listen');
      const run = startCli(['wait'], { INTERLUDE_DATA_DIR: home });
      onTestFinished(() => void run.process.kill('SIGKILL'));
      const id = `toolu_${randomUUID()}`;
      const call = { type: 'tool_use', id, name: 'Bash', input: { command: 'interlude wait' } };
      say({ type: 'assistant', message: { id: randomUUID(), stop_reason: 'tool_use', content: [call] } });
      const content = [{ type: 'tool_result', tool_use_id: id, content: 'It runs in the background.' }];
      say({ type: 'user', message: { role: 'user', content }, toolUseResult: { backgroundTaskId: 't1' } });
      await eventually(isWakeable);
      await rest();
      return { ...run, call };
    };
    /** Wakes the agent after the background command has ended. */
    const wakes = (toolUseId: string) => {
      const notification = `<task-id>t1</task-id>\n<tool-use-id>${toolUseId}</tool-use-id>\n<status>completed</status>`;
      const content = `<task-notification>\n${notification}\n<summary>Background command "Wait" completed</summary>\n</task-notification>`;
      say({ type: 'user', message: { role: 'user', content }, origin: { kind: 'task-notification' } });
    };
    /** Requests the control port as `interlude wait` does. */
    const ask = async (path: string) => {
      const control = await readControlFile(controlPath(home, 'hooks'));
      const headers = { authorization: `Bearer ${control?.secret}` };
      const response = await fetch(`${control?.url}${path}`, { method: 'POST', headers });
      return { status: response.status, body: (await response.json()) as Record<string, string> };
    };
    const askAs = (waitId: string, within = 20) => ask(`/wait?pid=${process.pid}&id=${waitId}&within=${within}`);
    return { ...one, agentId, rest, send, message, isWakeable, listen, wakes, ask, askAs };
  }

  /** Runs another turn. @returns its stop hook's output */
  async function endTurn(one: Awaited<ReturnType<typeof atRest>>, more: object = {}): Promise<string> {
    const { hook, prompt } = one;
    await hook('UserPromptSubmit', { prompt: 'More' });
    prompt('More');
    return await hook('Stop', { stop_hook_active: false, ...more });
  }

  return { ...played, atRest, endTurn };
}
