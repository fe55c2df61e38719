import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CodexInput, CodexReply } from '../support/acp-model';
import { releaseTask, WAIT_FOR_RELEASE } from '../support/claude-stage';
import { CODEX, codexStage } from '../support/codex-stage';
import { LocalDashboard } from '../support/local-dashboard';
import { answering, assistantText, messages, notices, requests, taskEnds, turnStates } from '../support/operator';

/** The real Codex and runner, and the dashboard’s handlers. Only the model is scripted. */

let server: LocalDashboard;
beforeAll(async () => {
  server = await LocalDashboard.start();
});
afterAll(() => server.close());

const OWN = ['--start', '--command', CODEX, '--approval-policy', 'never', '--sandbox', 'danger-full-access'];

/** Starts a background poll, reports its wake-up input, and echoes other input. */
function poll({ said: text, results }: CodexInput): CodexReply {
  if (text.includes('ended with exit code')) return { text: /ended with exit code \d+/.exec(text)?.[0] ?? '' };
  if (text.includes('there?')) return { text: 'I am.' };
  if (results.length > 0) return { text: 'Started the poll.' };
  if (text.includes('HOLD'))
    return { text: 'Starting.', run: { cmd: `${WAIT_FOR_RELEASE}echo went; exit 3`, yield_time_ms: 300 } };
  const run = { cmd: 'echo begin; sleep 2; echo end; exit 3', yield_time_ms: 300 };
  if (text.includes('START')) return { text: 'Starting.', run };
  if (text.includes('WAIT')) return { text: 'Waiting.', run: { cmd: 'sleep 300', yield_time_ms: 30_000 } };
  return { text: 'OK.' };
}

// Skipped unless the real agents are installed (npm run test:agents).
describe.skipIf(!existsSync(CODEX))('a live Codex', () => {
  test('wakes after a background command only through Wake, in a turn that names the task', async () => {
    const stage = await codexStage(server, poll);
    const { operator } = stage;
    await stage.runner(...OWN, '--session', stage.sessionId);
    await expect.poll(() => operator.session()).toMatchObject({ turnCount: 0, agentId: stage.agentId });
    const id = await operator.send('START');
    await operator.until('the end of the poll', (turns) => taskEnds(turns)[0]);
    const [task] = await operator.tasks();
    expect(task).toMatchObject({ status: 'failed', exitCode: 3, kind: 'shell' });
    await expect.poll(() => operator.output(task?.id ?? '')).toBe('begin\nend\n');
    expect(turnStates(await operator.finished(1))).toEqual(['user finished']);
    await stage.ask('POST', `tasks/${task?.id}/wake`, {});
    const woken = await operator.until('its end', (all) =>
      all.find((one) => assistantText(one).includes('exit code 3')),
    );
    expect(woken).toMatchObject({
      kind: 'between-run',
      trigger: { kind: 'task', taskIds: [task?.id], wokenBy: 'interlude' },
    });
    const turns = await operator.finished(2);
    expect(answering(turns, id)?.kind).toBe('user');
    expect(messages(turns, 'user')).toHaveLength(1);
    expect(await stage.end()).toMatchObject({ exitCode: 0 });
  });

  test('receives its workspace and --prompt once, and exits with its runner when ended from the dashboard', async () => {
    const heard: string[] = [];
    const script = ({ said: text, context }: CodexInput): CodexReply => {
      heard.push([context.includes('symbolic links') ? 'noted' : '', text.split('\n').at(-1)].join(' '));
      return { text: 'OK.' };
    };
    const INTERLUDE_WORKSPACE = JSON.stringify({ symlinks: ['node_modules'] });
    const stage = await codexStage(server, script, { INTERLUDE_WORKSPACE });
    const { operator } = stage;
    const started = [...OWN, '--session', stage.sessionId, '--prompt', 'Build it.'];
    const first = await stage.runner(...started);
    expect(turnStates(await operator.finished(1))).toEqual(['user finished']);
    first.process.kill('SIGKILL');
    await first.ended;
    const second = await stage.runner(...started);
    await operator.send('Test it.');
    const turns = await operator.finished(2);
    expect(messages(turns, 'user').map(({ text }) => text)).toEqual(['Build it.', 'Test it.']);
    expect(heard).toEqual(['noted Build it.', ' Test it.']);
    await stage.ask('POST', 'end', {});
    const { exitCode, stderr } = await second.ended;
    expect([exitCode, stderr]).toEqual([0, 'interlude: ended from the dashboard\n']);
    expect(await operator.session()).toMatchObject({ state: 'exited', stateReason: 'ended from the dashboard' });
  });

  test('wakes without Wake when the rule is set', async () => {
    const stage = await codexStage(server, poll);
    const { operator } = stage;
    await stage.runner(...OWN, '--session', stage.sessionId);
    await expect.poll(() => operator.session()).toMatchObject({ turnCount: 0 });
    await stage.ask('PUT', 'wake-rule', { when: 'command-ended' });
    await operator.send('START');
    const turns = await operator.finished(2);
    const [task] = await operator.tasks();
    expect(task).toMatchObject({ status: 'failed', exitCode: 3, answeredInTurnId: turns[1]?.id });
    expect(turnStates(turns)).toEqual(['user finished', 'between-run finished']);
    // Codex started no turn itself: the only new turn names the task and contains the answer.
    expect(turns[1]).toMatchObject({ trigger: { kind: 'task', taskIds: [task?.id], wokenBy: 'interlude' } });
    expect(assistantText(turns[1])).toBe('ended with exit code 3');
    expect(messages(turns, 'user').map(({ text }) => text)).toEqual(['START']);
  });

  test('answers a message sent during a turn in its own turn, even after an interrupt', async () => {
    const stage = await codexStage(server, poll);
    const { operator } = stage;
    await stage.runner(...OWN, '--session', stage.sessionId);
    await expect.poll(() => operator.session()).toMatchObject({ turnCount: 0 });
    await operator.send('WAIT');
    await operator.until('the command', (turns) =>
      turns.some((turn) => turn.items.some(({ kind }) => kind === 'tool-call')),
    );
    const id = await operator.send('Are you there?');
    await expect.poll(async () => messages(await operator.turns(), 'user').at(-1)?.delivery).toBe('delivered');
    await operator.interrupt();
    const turn = await operator.until('its turn', (turns) => answering(turns, id));
    await operator.until('its answer', (turns) => assistantText(answering(turns, id)).includes('I am.'));
    expect(turn.kind).toBe('user');
    const [task] = await operator.tasks();
    expect(task?.status).toBe('running');
    await operator.stop(task?.id ?? '');
    await expect.poll(async () => (await operator.tasks())[0]?.status).toBe('stopped');
  });

  test('accepts a permission answer from the dashboard', async () => {
    const stage = await codexStage(server, ({ said: text, results }) =>
      results.length > 0
        ? { text: 'Made it.' }
        : text.includes('START')
          ? {
              text: 'May I?',
              run: { cmd: 'touch made', sandbox_permissions: 'require_escalated', justification: 'To make' },
            }
          : { text: 'OK.' },
    );
    const { operator } = stage;
    const policy = ['--approval-policy', 'on-request', '--sandbox', 'read-only'];
    await stage.runner('--start', '--command', CODEX, ...policy, '--session', stage.sessionId);
    await expect.poll(() => operator.session()).toMatchObject({ turnCount: 0 });
    await operator.send('START');
    const request = await operator.until('the request', (turns) => requests(turns)[0]);
    expect(request).toMatchObject({ title: 'To make', options: [{ id: 'accept' }, {}, {}, { id: 'decline' }] });
    const { digest } = request;
    await operator.answer(request.id, { behavior: 'allow', optionId: 'accept', digest });
    const [turn] = await operator.finished(1);
    expect(assistantText(turn)).toContain('Made it.');
    expect(requests(turn === undefined ? [] : [turn])[0]).toMatchObject({ outcome: 'allowed' });
  });

  test('fails the turn and continues the thread when its server is killed', async () => {
    const stage = await codexStage(server, poll);
    const { operator } = stage;
    await stage.runner(...OWN, '--session', stage.sessionId);
    await expect.poll(() => operator.session()).toMatchObject({ turnCount: 0 });
    await operator.send('WAIT');
    await operator.until('the command', (turns) =>
      turns.some((turn) => turn.items.some(({ kind }) => kind === 'tool-call')),
    );
    stage.killServer();
    await operator.until('the failure', (turns) => turns.some(({ state }) => state === 'failed'));
    const id = await operator.send('Are you there?');
    await operator.until('its answer', (turns) => assistantText(answering(turns, id)).includes('I am.'));
    expect(notices(await operator.turns()).some((text) => text.includes('started again'))).toBe(true);
  });

  test('continues with the next runner when a runner attached to a running server is killed', async () => {
    const stage = await codexStage(server, poll);
    const { socket, begin } = await stage.daemon();
    const first = await stage.runner('--socket', socket);
    const operator = stage.operatorOf(await begin('HOLD'));
    await expect.poll(() => operator.tasks()).toMatchObject([{ status: 'running' }]);
    first.process.kill('SIGKILL');
    await first.ended;
    await releaseTask(stage.cwd);
    await stage.runner('--socket', socket);
    await operator.until('the end of the poll', (turns) => taskEnds(turns)[0]);
    const id = await operator.send('Are you there?');
    await operator.until('its answer', (turns) => assistantText(answering(turns, id)).includes('I am.'));
    expect(taskEnds(await operator.turns())).toHaveLength(1);
    expect(await operator.tasks()).toMatchObject([{ status: 'failed', exitCode: 3 }]);
  });
});
