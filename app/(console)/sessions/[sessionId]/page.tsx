import type { TranscriptPage } from '@interlude/protocol/read-models';
import type { Metadata } from 'next';
import { notFound } from 'next/navigation';
import { readForPage, readInTurn } from '@/app/(console)/read-in-turn';
import { pageNonce } from '@/app/page-nonce';
import { sessionTitle } from '@/components/sessions/session-labels';
import { FIRST_PAGE, firstPageOf } from '@/components/transcript/first-page';
import { nameText } from '@/components/ui/verbatim';
import { publicUrl } from '@/lib/server/access/access-settings';
import { readAgentRow } from '@/lib/server/queries/read-agents';
import { readSession } from '@/lib/server/queries/read-sessions';
import { readTasks } from '@/lib/server/queries/read-tasks';
import { readTranscript } from '@/lib/server/queries/read-transcript';
import type { SessionStart } from './session-stores';
import { SessionView } from './session-view';

interface Props {
  params: Promise<{ sessionId: string }>;
  searchParams: Promise<{ tab?: string | string[] }>;
}

export async function generateMetadata({ params }: Pick<Props, 'params'>): Promise<Metadata> {
  // Next decodes the parameter here, but not for the page itself.
  const { sessionId } = await params;
  const detail = await readForPage((scope) => readSession(scope, sessionId));
  return { title: detail === null ? 'No such session' : nameText(sessionTitle(detail.session)) };
}

/** Tasks sent with the page; a session may have thousands. */
const TASKS_WITH_PAGE = 100;

function tasksNamedIn(page: TranscriptPage | null): string[] {
  return (page?.turns ?? []).flatMap(({ trigger, items }) => [
    ...(trigger?.taskIds ?? []),
    ...items.flatMap((item) => (item.kind === 'task' ? [item.id] : [])),
  ]);
}

/** Reads the newest turns with the page, so the first paint needs no further request. */
export default async function SessionPage({ params, searchParams }: Props) {
  const sessionId = decodeURIComponent((await params).sessionId);
  const nonce = await pageNonce();
  const { tab } = await searchParams;
  const [session, tasks, transcript] = await readInTurn((scope) => {
    const newest = readTranscript(scope, sessionId, { before: null, limit: FIRST_PAGE });
    const named = () => newest.then(tasksNamedIn);
    return Promise.all([
      readSession(scope, sessionId),
      readTasks(scope, sessionId, { limit: TASKS_WITH_PAGE, named }),
      newest,
    ]);
  });
  if (session === null || tasks === null || transcript === null) notFound();
  const agent = await readForPage((scope) => readAgentRow(scope, session.session.agentId));
  return (
    <SessionView
      key={sessionId}
      sessionId={sessionId}
      initial={JSON.stringify({
        session,
        agent,
        tasks,
        transcript: firstPageOf(transcript),
      } satisfies SessionStart)}
      nonce={nonce}
      tab={typeof tab === 'string' ? tab : ''}
      publicUrl={publicUrl(process.env)}
    />
  );
}
