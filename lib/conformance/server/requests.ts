import { setTimeout as pause } from 'node:timers/promises';
import type { Fields } from '@interlude/protocol/fields';
import { requestDigest } from '@interlude/protocol/request-digest';
import { agree, type Check, hold } from '../check';
import { custom, finished, type PlayedAgent, started } from './played-agent';
import type { ServerStage } from './server-stage';

const WHY = '7, Answers to requests';
const WAITS_MS = 50;
const asks = (id: string, command: string, more: Fields = {}) =>
  custom('request:opened', {
    request_id: id,
    kind: 'permission',
    tool_name: 'Bash',
    input: { timeout: 5, command },
    ...more,
  });

async function request(agent: PlayedAgent): Promise<Fields> {
  const items = (await agent.turns()).flatMap((turn) => turn.items as Fields[]);
  return items.findLast((item) => item.kind === 'request') ?? {};
}

const pathOf = (agent: PlayedAgent, id: string) => `${agent.path}/requests/${id}`;

export const REQUESTS: readonly Check<ServerStage>[] = [
  {
    group: 'requests',
    name: 'an open request has the digest of what is asked, whatever its producer wrote there',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('digest');
      await agent.tell(started('r1'), asks('q1', 'ls', { digest: 'forged', opened_position: '1' }));
      const { digest, openedPosition, position } = await request(agent);
      const input = { command: 'ls', timeout: 5 };
      const about = { sessionId: agent.sessionId, requestId: 'q1', tool: 'Bash', input, position: String(position) };
      const seen = { digest, openedPosition };
      const expected = { digest: requestDigest(about), openedPosition: position };
      agree('the request', seen, expected, 'Compute it yourself: SHA-256 of the canonical JSON (RFC 8785).');
    },
  },
  {
    group: 'requests',
    name: 'a request is answered once, and the runner is sent the digest of what was answered',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('answered');
      const commands = await agent.listen();
      await agent.tell(started('r1'), asks('q1', 'ls'));
      const { digest, openedPosition } = await request(agent);
      const body = { behavior: 'allow', digest, clientId: 'one' };
      await stage.ask(pathOf(agent, 'q1'), body, { status: 202 });
      await stage.ask(pathOf(agent, 'q1'), body, { status: 202 });
      const refusal = { status: 409, error: { code: 'conflict', reason: 'request_answered' } };
      await stage.ask(pathOf(agent, 'q1'), { ...body, behavior: 'deny', clientId: 'two' }, refusal);
      const todo = 'Send one permission.decision, with the digest and openedPosition of the request.';
      const { data } = await commands.frame('the decision', ({ event }) => event === 'command', todo);
      const said = { requestId: 'q1', digest, openedPosition, behavior: 'allow' };
      agree('the command', data, { type: 'permission.decision', body: said }, todo);
      commands.close();
    },
  },
  {
    group: 'requests',
    name: 'an answer to what was asked before is refused, with the digest of what is asked now',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('changed');
      await agent.tell(started('r1'), asks('q1', 'ls'));
      const { digest: before } = await request(agent);
      await agent.tell(asks('q1', 'rm -r .'));
      const { digest: now } = await request(agent);
      hold(before !== now, 'another digest for another input', now, 'Make the input a part of the digest.');
      const refusal = { status: 409, error: { code: 'conflict', reason: 'request_changed', digest: now } };
      await stage.ask(pathOf(agent, 'q1'), { behavior: 'allow', digest: before }, refusal);
    },
  },
  {
    group: 'requests',
    name: 'a run that ends waiting for a person opens a request by itself, which the next run’s resume answers',
    why: '4, Derived requests',
    async run(stage) {
      const agent = stage.agent('derived');
      const interrupts = [{ id: 'i1', reason: 'tool_call', message: 'May I?' }];
      await agent.tell(started('r1'), finished('r1', {}, { outcome: { type: 'interrupt', interrupts } }));
      const opened = { id: 'i1', title: 'May I?', requestKind: 'permission', outcome: null };
      agree('the request', await request(agent), opened, 'Derive a request from each interrupt of outcome.interrupts.');
      const resume = [{ interruptId: 'i1', status: 'resolved', payload: { approved: true } }];
      await agent.tell({ ...started('r2'), input: { resume } });
      agree('it', await request(agent), { id: 'i1', outcome: 'allowed' }, 'Resolve what a resume names.');
    },
  },
  {
    group: 'requests',
    name: 'what its agent waits for no longer can’t be answered',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('expired');
      const now = Date.now();
      const opened = { ...agent.event(asks('q1', 'ls', { expires_at: now + WAITS_MS })), occurredAt: now };
      await agent.outbox.send(agent.event(started('r1')), opened);
      await pause(4 * WAITS_MS);
      const refusal = { status: 409, error: { code: 'conflict', reason: 'request_expired' } };
      await stage.ask(pathOf(agent, 'q1'), { behavior: 'allow' }, refusal);
    },
  },
];
