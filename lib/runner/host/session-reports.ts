import type { StatusRecord } from './status-record';

/** How often all sessions are reported: as often as the server tells others that an agent is unchanged. */
const ALL_EVERY_MS = 60_000;
/** If two reports are further apart than this, one is missing, and it is not known whether earlier ones arrived. */
const GAP_MS = 15_000;

/**
 * Which of a runner's sessions a report has to include. The server keeps the newest status of an agent and does not
 * write what repeats it: two sessions at rest reported in turn would be news for ever.
 */
export class SessionReports {
  #told = new Map<string | undefined, string>();
  /** The session whose record came last: its status is the one the server has. */
  #newest: string | undefined;
  #allAt = Number.NEGATIVE_INFINITY;
  #pickedAt = Number.NEGATIVE_INFINITY;

  /** The next report includes all of them: the server may not have what it was told. */
  forget(): void {
    this.#allAt = Number.NEGATIVE_INFINITY;
  }

  /**
   * @param sessions a status record of each
   * @param now milliseconds of a steady clock
   * @returns those under way and those that have changed, or else the one that was told of last: each report is a sign
   *   of life, and one in which nothing is new repeats what the server has
   */
  pick(sessions: readonly StatusRecord[], now: number): StatusRecord[] {
    const isForAll = now - this.#allAt >= ALL_EVERY_MS || now - this.#pickedAt > GAP_MS;
    this.#pickedAt = now;
    if (isForAll) this.#allAt = now;
    const isNews = (record: StatusRecord) => isUnderWay(record) || this.#told.get(record.sessionId) !== wordsOf(record);
    const news = sessions.filter((record) => isForAll || isNews(record));
    const picked = news.length > 0 ? news : this.#signOfLife(sessions);
    this.#told = new Map(sessions.map((record) => [record.sessionId, wordsOf(record)]));
    this.#newest = picked.at(-1)?.sessionId;
    return picked;
  }

  #signOfLife(sessions: readonly StatusRecord[]): StatusRecord[] {
    const newest = sessions.find(({ sessionId }) => sessionId === this.#newest) ?? sessions.at(-1);
    return newest === undefined ? [] : [newest];
  }
}

function wordsOf({ status }: StatusRecord): string {
  return JSON.stringify(status);
}

/** The server misses a runner in these. */
function isUnderWay({ status: { openTurnId, tasks, requests } }: StatusRecord): boolean {
  const isAny = (list: unknown) => Array.isArray(list) && list.length > 0;
  return typeof openTurnId === 'string' || isAny(tasks) || isAny(requests);
}
