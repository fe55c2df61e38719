import type { CommandAnswer, RetireAnswer } from '@interlude/protocol/commands';
import type { InboxList, InboxMarked } from '@interlude/protocol/inbox';
import type { SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { fetchJson, postJson, putJson } from '@/components/live/fetch-json';
import { IdempotentPost } from '@/components/live/idempotent-post';
import { asShown, SOMETHING_NEW } from '@/components/live/mark-items';
import { plural } from '@/components/ui/duration';
import type { AgentJob } from './use-each-agent';

const PAGE = 100;

/** Interrupts the turn of each session that has one, as it is open now. */
export const interruptAll: AgentJob = async ({ id }) => {
  const open: SessionSummary[] = [];
  for await (const { sessions } of pagesOf<SessionList>('/sessions', [
    ['agent', id],
    ['state', 'working'],
  ])) {
    open.push(...sessions.filter(({ openTurnId }) => openTurnId !== null));
  }
  if (open.length === 0) return 'no turn is open';
  const refused: string[] = [];
  for (const session of open) {
    const path = `/sessions/${encodeURIComponent(session.id)}/interrupt`;
    await new IdempotentPost()
      .post<CommandAnswer>(path, { turnId: session.openTurnId })
      .catch((error: Error) => refused.push(error.message));
  }
  const asked = open.length - refused.length;
  if (asked === 0) throw new Error(refused[0]);
  const also = refused.length === 0 ? '' : `; ${refused.length} refused: ${refused[0]}`;
  return `asked to interrupt ${plural(asked, 'turn')}${also}`;
};

/** Marks what the inbox has of an agent and its sessions as seen, but for what waits for an answer. */
export const markSeen: AgentJob = async ({ id }) => {
  let [seen, left] = [0, 0];
  const kinds = SEEN_KINDS.map((kind) => ['kind', kind]);
  for await (const { items } of pagesOf<InboxList>('/inbox', [['agent', id], ...kinds])) {
    const shown = asShown(items.filter(({ seenAt }) => seenAt === null));
    if (shown.length === 0) continue;
    const { changed } = await postJson<InboxMarked>('/inbox/marks', { items: shown, mark: 'seen' });
    left += changed.length;
    seen += shown.length - changed.length;
  }
  const told = seen === 0 ? 'nothing' : plural(seen, 'item');
  if (left > 0) return `${told} seen; ${SOMETHING_NEW}`;
  return seen === 0 ? 'nothing new' : `${told} seen`;
};
const SEEN_KINDS = ['failure', 'lost-contact', 'hook-failure', 'delivery-gap'];

export const retire: AgentJob = ({ id }) => setRetired(id, true);
export const takeBack: AgentJob = ({ id }) => setRetired(id, false);

async function setRetired(id: string, retired: boolean): Promise<string> {
  await putJson<RetireAnswer>(`/agents/${encodeURIComponent(id)}/retirement`, { retired });
  return retired ? 'retired' : 'taken back';
}

/** A list of the server's, page by page, to its end. */
async function* pagesOf<Page extends { next: string | null }>(path: string, asked: string[][]): AsyncGenerator<Page> {
  for (let after: string | null = '0'; after !== null; ) {
    const params = new URLSearchParams([...asked, ['after', after], ['limit', String(PAGE)]]);
    const page: Page = await fetchJson<Page>(`${path}?${params}`);
    yield page;
    after = page.next;
  }
}
