import { RUNNER_AWAY_MS } from '@interlude/protocol/limits';
import { background, say, turn } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { claudeStage, quickStep } from '../support/claude-stage';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { answering, assistantText, expectAnswered, messages, notices, turnStates } from '../support/operator';
import { expectWithin } from '../support/timing';

/** The real Claude Code, runner and dashboard when one of them fails. Only the model is scripted. */

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

/** A runner whose agent is in the middle of a slow answer. @param before earlier steps of the turn */
async function midAnswer(...before: ReturnType<typeof quickStep>[]) {
  const answer = quickStep([say('A long answer that never comes to its end')], { pace: 3 });
  const stage = await claudeStage(server, {
    turns: [turn(/START/, ...before, answer), turn(/NEXT/, quickStep([say('Reply to the next.')]))],
  });
  await stage.runner();
  const id = await stage.operator.send('START');
  await stage.operator.until('the answer to begin', (turns) => assistantText(answering(turns, id)).includes('A long'));
  return stage;
}

describe('a live Claude Code after a failure', () => {
  test('delivers output once when the dashboard is down mid-turn', async () => {
    const talk = Array.from({ length: 30 }, (_, index) => `sentence ${index} of a long answer`).join(', ');
    const stage = await claudeStage(server, {
      turns: [
        turn(/START/, quickStep([say(talk)], { pace: 40 })),
        turn(/NEXT/, quickStep([say('Reply to the next.')])),
      ],
    });
    const { operator } = stage;
    await stage.runner();
    const id = await operator.send('START');
    await operator.until('the talk to begin', (turns) => assistantText(answering(turns, id)) !== '');
    await server.kill9();
    await server.restart();
    const [first] = await operator.finished(1);
    expect(assistantText(first)).toBe(talk);
    const next = await operator.send('NEXT');
    const turns = await operator.finished(2);
    expectAnswered(turns, id, talk);
    expectAnswered(turns, next, 'Reply to the next.');
    expect(await operator.session()).toMatchObject({ lostCount: 0, quarantinedCount: 0 });
  });

  test('resumes, reports the cut-off turn and delivers queued messages when the runner is killed', async () => {
    const stage = await midAnswer(quickStep([background('sleep 60', 'Long poll')]));
    const { operator } = stage;
    stage.run.process.kill('SIGKILL');
    await stage.run.ended;
    const next = await operator.send('NEXT');
    expect(messages(await operator.turns(), 'user').at(-1)).toMatchObject({ id: next, delivery: 'queued' });
    await stage.runner();
    const turns = await operator.finished(2);
    expect(turns[0]).toMatchObject({ state: 'failed', error: { code: 'runner_exited' } });
    expectAnswered(turns, next, 'Reply to the next.');
    // lost with the runner until the resumed Claude Code reports it as stopped
    await expect.poll(async () => (await operator.tasks()).map(({ status }) => status)).not.toContain('running');
    expect(notices(await operator.turns())).toContain('The runner was restarted; the session continues.');
    expect(await operator.session()).toMatchObject({ runningTaskCount: 0, pendingRequestCount: 0, lostCount: 0 });
  });

  test('shows nothing as working 30 s after runner and dashboard are killed, and resumes', async () => {
    const stage = await midAnswer();
    const { operator } = stage;
    expect(await operator.session()).toMatchObject({ state: 'working', away: null });
    const killedAt = Date.now();
    stage.run.process.kill('SIGKILL');
    await Promise.all([stage.run.ended, server.kill9()]);
    await server.restart();
    // The server reported nothing while it was down. Its start time on a slow machine doesn't count.
    const downMs = Math.max(0, Date.now() - killedAt - RUNNER_AWAY_MS);
    await expect.poll(async () => (await operator.session())?.state).toBe('unknown');
    expectWithin(Date.now() - killedAt - downMs, 30_000);
    const missed = await operator.session();
    expect(missed).toMatchObject({
      stateReason: 'its runner has gone in the middle of a turn',
      away: { agentGoesOn: false },
    });
    expect(missed?.away?.lastHeardAt).toBeLessThanOrEqual(killedAt + 1_000);
    await stage.runner();
    const next = await operator.send('NEXT');
    const turns = await operator.finished(2);
    expect(turns[0]).toMatchObject({ state: 'failed', error: { code: 'runner_exited' } });
    expectAnswered(turns, next, 'Reply to the next.');
    expect(await operator.session()).toMatchObject({ state: 'idle', away: null, lostCount: 0 });
  });

  test('marks the session as taken over when a newer runner fences the old one', async () => {
    const stage = await claudeStage(server, { turns: [] });
    const { agentId, operator } = stage;
    const run = await stage.runner();
    const agent = `${server.url}/api/v1/agents/${agentId}`;
    const headers = { authorization: `Bearer ${server.token}` };
    const connection = async () =>
      ((await (await fetch(agent, { headers })).json()) as { agent: { connection: string } }).agent.connection;
    await expect.poll(connection).toBe('connected');
    const query = new URLSearchParams({ runner: 'newer', startedAt: String(Date.now() + 60_000) });
    const newer = await fetch(`${agent}/commands?${query}`, { headers });
    expect((await run.ended).exitCode).toBe(1);
    const stateReason = 'another runner of this agent has taken over';
    expect(await operator.session()).toMatchObject({ state: 'exited', stateReason });
    await newer.body?.cancel();
  });

  test('sends --prompt once when the runner is killed and restarted with the same command', async () => {
    const stage = await claudeStage(server, {
      turns: [turn(/START/, quickStep([say('Started.')])), turn(/NEXT/, quickStep([say('Reply to the next.')]))],
    });
    const { operator } = stage;
    await stage.runner('--prompt', 'START');
    await operator.finished(1);
    stage.run.process.kill('SIGKILL');
    await stage.run.ended;
    await stage.runner('--prompt', 'START');
    await operator.send('NEXT');
    const turns = await operator.finished(2);
    expect(turnStates(turns)).toEqual(['user finished', 'user finished']);
    expect(turns.map((one) => messages([one], 'user').map(({ text, name }) => [name, text]))).toEqual([
      [['operator', 'START']],
      [['operator', 'NEXT']],
    ]);
    expect(await operator.session()).toMatchObject({ owedCount: 0 });
    expect(stage.problems()).toEqual([]);
  });

  test('resumes a killed Claude Code and resends messages it had not started', async () => {
    const stage = await midAnswer(quickStep([background('sleep 60', 'Long poll')]));
    const { operator } = stage;
    const next = await operator.send('NEXT');
    await operator.until('its delivery', (turns) =>
      messages(turns, 'user').some((one) => one.id === next && one.delivery === 'delivered'),
    );
    const agents = `${server.url}/api/v1/agents/${stage.agentId}`;
    const response = await fetch(agents, { headers: { authorization: `Bearer ${server.token}` } });
    const { agent: summary } = (await response.json()) as { agent: { status: { process: { pid: number } } } };
    process.kill(summary.status.process.pid, 'SIGKILL');
    const turns = await operator.finished(2);
    expect(turnStates(turns)).toEqual(['user failed', 'user finished']);
    expectAnswered(turns, next, 'Reply to the next.');
    const told = notices(await operator.turns()).join('\n');
    expect(told).toContain('ended by SIGKILL). Restarting in 0.5 s.');
    // its shell survives
    expect(told).toMatch(/is still running, and how it ends won't be reported: sleep 60 \(process \d+\)/);
  });
});
