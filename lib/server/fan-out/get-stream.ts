import { AppError } from '@interlude/protocol/errors';
import { MAX_TOPICS } from '@interlude/protocol/limits';
import { isPosition, positionToNumber } from '@interlude/protocol/position';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import { formatTopic, parseTopic, SSE_HEADERS, type Topic } from '@interlude/protocol/sse';
import { columnText } from '@/db/table-rows';
import { requireScope } from '@/lib/server/access/principal';
import type { RequestContext, ServerContext } from '@/lib/server/access/request-context';
import { StreamedResponse } from '@/lib/server/access/streamed-response';
import type { FanOut } from './fan-out';

export interface StreamServer extends ServerContext {
  fanOut: FanOut;
}

/**
 * `GET /stream?topic=…&topic=…&after=<position>`
 *
 * @throws AppError `invalid_argument` for a bad topic or position, `unavailable` while shutting down
 */
export async function getStream(
  { request, principal, digests, whenOver }: RequestContext,
  server: StreamServer,
): Promise<Response> {
  const query = new URL(request.url).searchParams;
  const topics = topicsOf(query.getAll('topic'));
  const { scope, redacts } = principal;
  for (const topic of topics) if (topic.kind !== 'fleet') await requireScope(server.database, scope, topic, 'log');
  const after = afterOf(request.headers.get('last-event-id'), query.get('after'));
  const open = await server.fanOut.subscribe({
    topics,
    scope,
    redacts,
    digests,
    after,
    signal: request.signal,
    maxMs: server.streamMaxMs,
    client: principal.credentialId,
    whenOver,
  });
  return markRedacted(new StreamedResponse(open, SSE_HEADERS));
}

function topicsOf(names: readonly string[]): Topic[] {
  const topics = new Map<string, Topic>();
  for (const name of names) {
    const topic = parseTopic(name);
    if (topic === null) throw invalid(`There is no topic ${JSON.stringify(name)}.`, { topic: name });
    topics.set(formatTopic(topic), storedAs(topic));
  }
  if (topics.size === 0) throw invalid('A stream needs a topic.', {});
  if (topics.size > MAX_TOPICS) throw invalid(`A stream carries at most ${MAX_TOPICS} topics.`, { limit: MAX_TOPICS });
  return [...topics.values()];
}

/** Converts ids to the stored form, as in rows. */
function storedAs(topic: Topic): Topic {
  if (topic.kind === 'session') return { ...topic, sessionId: columnText(topic.sessionId) };
  if (topic.kind === 'logs') return { ...topic, agentId: columnText(topic.agentId) };
  return topic;
}

function invalid(problem: string, details: Record<string, unknown>): AppError {
  const message = `${problem} Send topic=fleet, topic=session:<id> or topic=logs:<agentId>, each at most once.`;
  return new AppError('invalid_argument', message, { details });
}

/** Last-Event-ID wins: a reconnecting browser repeats the URL, whose `after` is outdated. */
function afterOf(lastEventId: string | null, after: string | null): number | null {
  const [name, text] = lastEventId ? ['Last-Event-ID', lastEventId] : ['after', after];
  if (text === null) return null;
  if (!isPosition(text)) {
    throw new AppError(
      'invalid_argument',
      `${name} is not a position: ${JSON.stringify(text)}. Send the id of the last frame you received, 0 for the beginning, or omit it to start now.`,
      { details: { [name === 'after' ? 'after' : 'lastEventId']: text } },
    );
  }
  return positionToNumber(text);
}
