import { randomUUID } from 'node:crypto';
import type { MessageItem, SessionDetail, Turn } from '@interlude/protocol/read-models';
import { controlPath, readControlFile } from '@interlude/runner/host/control-file';
import { expect, onTestFinished } from 'vitest';
import { startCli } from './cli';
import { playedTerminals } from './terminal-companion';

export const messagesOf = (turns: readonly Turn[]) =>
  turns.flatMap(({ items }) => items.filter((item): item is MessageItem => item.kind === 'message'));

/** Idle terminals with the real companion, whose agents may listen for messages by `interlude wait`. */
export function idleTerminals() {
  const played = playedTerminals();
  const { atWork, read, turnsOf, post, eventually } = played;

  /** A terminal whose turn has ended. */
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
    /** The agent starts `interlude wait` in a turn of its own. */
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
    /** Claude Code wakes its agent because the background command has ended. */
    const wakes = (toolUseId: string) => {
      const said = `<task-id>t1</task-id>\n<tool-use-id>${toolUseId}</tool-use-id>\n<status>completed</status>`;
      const content = `<task-notification>\n${said}\n<summary>Background command "Wait" completed</summary>\n</task-notification>`;
      say({ type: 'user', message: { role: 'user', content }, origin: { kind: 'task-notification' } });
    };
    /** Asks the control port as `interlude wait` does. */
    const ask = async (path: string) => {
      const control = await readControlFile(controlPath(home, 'hooks'));
      const headers = { authorization: `Bearer ${control?.secret}` };
      const response = await fetch(`${control?.url}${path}`, { method: 'POST', headers });
      return { status: response.status, body: (await response.json()) as Record<string, string> };
    };
    const askAs = (waitId: string, within = 20) => ask(`/wait?pid=${process.pid}&id=${waitId}&within=${within}`);
    return { ...one, agentId, rest, send, message, isWakeable, listen, wakes, ask, askAs };
  }

  /** Begins another turn and ends it. @returns what its stop hook prints */
  async function endTurn(one: Awaited<ReturnType<typeof atRest>>, more: object = {}): Promise<string> {
    const { hook, prompt } = one;
    await hook('UserPromptSubmit', { prompt: 'More' });
    prompt('More');
    return await hook('Stop', { stop_hook_active: false, ...more });
  }

  return { ...played, atRest, endTurn };
}
