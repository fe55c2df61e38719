import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { Fields } from '@interlude/protocol/fields';
import { comparePositions } from '@interlude/protocol/position';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import { foldTranscript, transcriptFromPage } from '@interlude/protocol/projections/transcript';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import { agree, type Check, hold } from '../check';
import { custom, finished, type PlayedAgent, PlayedOutbox, started, text } from './played-agent';
import type { ServerStage } from './server-stage';
import type { SeenFrame } from './sse-reader';

const WHY = '5, Live';
const ROUNDS = 25;

const topicOf = (agent: PlayedAgent) => `topic=${encodeURIComponent(`session:${agent.sessionId}`)}`;
const entryOf = ({ id, data }: SeenFrame): EventEntry => ({
  position: id ?? '0',
  occurredAt: Number(data.occurredAt),
  receivedAt: Number(data.receivedAt),
  event: data.event as AgUiEvent,
});

/** Two producers write to one session at once. @returns how many events of each there are */
async function bothWrite(stage: ServerStage, agent: PlayedAgent): Promise<number> {
  const other = new PlayedOutbox(stage, `${agent.outbox.id}/other`);
  const write = async (outbox: PlayedOutbox, by: string) => {
    for (let at = 1; at <= ROUNDS; at += 1) await outbox.send(agent.event(custom('conformance:mark', { by, at })));
  };
  await Promise.all([write(agent.outbox, 'one'), write(other, 'other')]);
  return ROUNDS;
}

function marksBy(frames: readonly SeenFrame[], by: string): unknown[] {
  return frames
    .map(({ data }) => (data.event as { value?: Fields }).value ?? {})
    .filter((value) => value.by === by)
    .map(({ at }) => at);
}

/** @throws Unmet unless each producer's marks are there, once and in order, and positions ascend */
function complete(frames: readonly SeenFrame[], count: number): void {
  const todo = 'Send each row of the topic once, in position order.';
  const numbers = Array.from({ length: count }, (_, at) => at + 1);
  for (const by of ['one', 'other']) agree(`the marks of ${by}`, marksBy(frames, by), numbers, todo);
  const odd = frames.findIndex(({ id }, at) => at > 0 && comparePositions(frames[at - 1]?.id ?? '0', id ?? '0') >= 0);
  hold(
    odd < 0,
    'ascending positions',
    frames.slice(Math.max(0, odd - 1), odd + 1).map(({ id }) => id),
    todo,
  );
}

export const ORDER: readonly Check<ServerStage>[] = [
  {
    group: 'order',
    name: 'a stream misses nothing and doubles nothing while two outboxes write, and positions ascend',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('positions');
      const { position } = await agent.tell(custom('x', {}));
      const stream = await stage.stream(`/stream?${topicOf(agent)}&after=${position}`);
      const count = await bothWrite(stage, agent);
      const heard = () => stream.named('session-event').length >= 2 * count;
      await stage.until(`${2 * count} events`, heard, 'Send what is stored while a stream is open.');
      stream.close();
      complete(stream.named('session-event'), count);
    },
  },
  {
    group: 'order',
    name: 'a stream that was cut off goes on right behind the last event that came',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('resume');
      await agent.tell(custom('x', {}));
      const count = await bothWrite(stage, agent);
      const frames: SeenFrame[] = [];
      let last = '0';
      for (const upTo of [7, 20, 33, 2 * count]) {
        const stream = await stage.stream(`/stream?${topicOf(agent)}&after=0`, { 'last-event-id': last });
        const enough = () => frames.length + stream.named('session-event').length >= upTo;
        const hello = await stream.frame('hello', ({ event }) => event === 'hello', 'Send hello first.');
        agree('hello', hello.data, { resume: 'ok' }, 'Resume after Last-Event-ID; it wins over `after`.');
        await stage.until(`${upTo} events`, enough, 'Serve a resumed stream from the database.');
        stream.close();
        const fresh = stream.named('session-event').filter(({ data }) => {
          return (data.event as AgUiEvent).name === 'conformance:mark';
        });
        frames.push(...fresh.slice(0, upTo - frames.length));
        last = frames.at(-1)?.id ?? last;
      }
      complete(frames, count);
    },
  },
  {
    group: 'order',
    name: 'a transcript folded from the stream is the one that is loaded at the same position',
    why: WHY,
    async run(stage) {
      const agent = stage.agent('live');
      await agent.tell(...text('m0', 'first', 'user'), started('r1', { turn: 'user', userMessageIds: ['m0'] }));
      const page = (await stage.read(`${agent.path}/transcript`)).body as unknown as TranscriptPage;
      const stream = await stage.stream(`/stream?${topicOf(agent)}&after=${page.position}`);
      for (const word of ['one ', 'two ', 'three']) {
        const [start, content, end] = text('m1', word) as [AgUiEvent, AgUiEvent, AgUiEvent];
        await agent.tell(...(word === 'one ' ? [start] : []), content, ...(word === 'three' ? [end] : []));
      }
      await agent.tell(
        custom('task:started', { task_id: 't1', description: 'a poll' }),
        finished('r1', { userMessageIds: ['m0'] }),
        custom('task:completed', { task_id: 't1', status: 'completed' }),
        started('r2', { turn: 'between-run', trigger: { kind: 'task', taskIds: ['t1'] } }),
        ...text('m2', 'woken'),
        custom('request:opened', { request_id: 'q1', kind: 'question', title: 'Which?', input: {} }),
      );
      const loaded = (await stage.read(`${agent.path}/transcript`)).body as unknown as TranscriptPage;
      const todo = 'Send the events as they are stored; fold them with the server’s own projections.';
      const heard = () => stream.named('session-event').some(({ id }) => comparePositions(id ?? '0', seenUpTo()) >= 0);
      const seenUpTo = () => loaded.turns.at(-1)?.items.at(-1)?.position ?? '0';
      await stage.until('the last event', heard, todo);
      stream.close();
      const live = foldTranscript(transcriptFromPage(page), stream.named('session-event').map(entryOf));
      agree('the transcript that was folded', live.turns, loaded.turns, todo);
      agree('the transcript that was loaded', loaded.turns, live.turns, todo);
    },
  },
];
