import type { InterludeMetadata, TurnTrigger } from '../ag-ui';
import { stringList } from '../event-fields';
import { readInterlude, withInterlude } from '../interlude-metadata';
import { MAX_NAMED } from '../limits';
import { comparePositions, type Position } from '../position';
import type { FoldedType, Home, TurnHeader, TurnPlaces, Unanswered } from '../turn-places';
import {
  claimedTaskEnds,
  type EventEntry,
  folded,
  inferredTrigger,
  isFoldable,
  newPlacement,
  noneTurn,
  type Placement,
} from './placement';

/**
 * Maximum number of open entities, unanswered messages and unanswered task ends kept per session; the oldest are
 * evicted first.
 */
const MAX_TRACKED = 256;
/** Maximum number of finished turns and tasks whose repetition is recognised. */
const MAX_FINISHED = 16;
const MAX_TASK_REPORTS = 32;

interface OpenedTurn extends Pick<TurnHeader, 'id' | 'parentTurnId' | 'trigger'> {
  kind: 'user' | 'between-run';
  /** Null if the run names none. It then answers every earlier message. */
  userMessageIds: string[] | null;
}

/**
 * The operations of the turn projection on a mutable copy of its state.
 *
 * Ordering: operations run in event order. The state is copied at the first change, so a batch of plain deltas returns
 * the same state object.
 * Failure: never throws; state is bounded by the MAX constants.
 */
export class TurnPlacer {
  #places: TurnPlaces;
  #isCopied = false;
  /** The homes of `places` after the first change. A Map finds its oldest key in constant time. */
  #homes: Map<string, Home> | null = null;

  constructor(places: TurnPlaces) {
    this.#places = places;
  }

  places(): TurnPlaces {
    if (this.#homes !== null) {
      this.#places = { ...this.#places, homes: Object.fromEntries(this.#homes) };
      this.#isCopied = false;
      this.#homes = null;
    }
    return this.#places;
  }

  /** The finished run that is being repeated. */
  get #repeatedTurnId(): string | undefined {
    return this.#places.retold;
  }

  get openTurnId(): string | null {
    return this.#places.openTurn?.id ?? null;
  }

  get chunks(): TurnPlaces['chunks'] {
    return this.#places.chunks;
  }

  setChunks(chunks: TurnPlaces['chunks']): void {
    if (chunks === this.chunks) return;
    const places = this.#writablePlaces();
    if (chunks === undefined) delete places.chunks;
    else places.chunks = chunks;
  }

  /**
   * Places the repeated start of a finished run, from a replay or a second reader of the same agent. A run that answers
   * a message or task not answered before is a new run under a reused id.
   *
   * @returns true for a repetition
   */
  placeRepeatedRun(
    placement: Placement,
    id: string,
    answers: { messageIds: readonly string[] | null; taskIds: readonly string[] },
  ) {
    const known = this.#places.finished?.find((turn) => turn.id === id);
    if (known === undefined || this.#places.openTurn?.id === id) return false;
    const { userMessages, endedTasks } = this.#places;
    const { messageIds, taskIds } = answers;
    const isNewRun =
      messageIds === null
        ? userMessages.some((message) => !message.queued && message.id !== known.messageId)
        : (messageIds.at(-1) ?? null) !== known.messageId;
    if (isNewRun || endedTasks.some((task) => taskIds.includes(task.id))) return false;
    placement.turnId = id;
    placement.isRepeated = true;
    if (this.#places.openTurn === null) Object.assign(this.#writablePlaces(), { retold: id, outside: null });
    if (known.messageId !== null) this.#claimMessages(placement, [known.messageId]);
    return true;
  }

  #endRepetition(placement: Placement): void {
    if (this.#repeatedTurnId === undefined) return;
    this.#closeHomes(placement, this.#repeatedTurnId, 'finished', false);
    delete this.#writablePlaces().retold;
  }

  placementOf(entry: EventEntry): Placement {
    return newPlacement(entry, this.#repeatedTurnId !== undefined);
  }

  /** Shows the event in the open turn, or outside any turn. */
  show(placement: Placement): void {
    placement.turnId = this.#currentTurn(placement);
  }

  openTurn(placement: Placement, turn: OpenedTurn): void {
    const { entry } = placement;
    this.#endRepetition(placement);
    delete placement.isRepeated;
    const places = this.#writablePlaces();
    if (places.openTurn !== null && places.openTurn.id !== turn.id) this.#close(placement, 'interrupted', null);
    places.outside = null;
    placement.turnId = turn.id;
    const waiting = places.userMessages.filter((message) => !message.queued).map((message) => message.id);
    // A repeated start keeps the start time and position.
    const known = places.openTurn;
    const userMessageIds = turn.userMessageIds ?? [...(known?.userMessageIds ?? []), ...waiting];
    const header: TurnHeader = {
      ...turn,
      state: 'open',
      position: known?.position ?? entry.position,
      userMessageIds,
      startedAt: known?.startedAt ?? entry.occurredAt,
      endedAt: null,
      error: null,
    };
    places.openTurn = header;
    if (turn.userMessageIds === null && userMessageIds.length === 0) places.awaitsMessage = true;
    else delete places.awaitsMessage;
    placement.turns.push(header);
    this.#claimMessages(placement, userMessageIds);
  }

  /** @param isSelfStarted true if the agent itself started the run */
  inferTrigger(isSelfStarted: boolean): TurnTrigger {
    return inferredTrigger(isSelfStarted ? this.#places.endedTasks : []);
  }

  /** Moves the task ends and user messages that the event names into this turn. */
  claim(placement: Placement, metadata: InterludeMetadata): void {
    const turnId = placement.turnId;
    if (turnId === null) return;
    const { claimed, moved } = claimedTaskEnds(this.#places.endedTasks, metadata);
    for (const end of moved) this.#move(placement, end, turnId, end.position);
    if (claimed.size > 0) {
      const places = this.#writablePlaces();
      places.endedTasks = places.endedTasks.filter((task) => !claimed.has(task));
    }
    this.#claimMessages(placement, stringList(metadata.userMessageIds));
  }

  closeTurn(placement: Placement, runId: string | null, end: Pick<TurnHeader, 'state' | 'error'>): void {
    const open = this.#places.openTurn;
    const repeatedId = this.#repeatedTurnId;
    if (repeatedId !== undefined && (runId === null || runId === repeatedId)) {
      placement.turnId = repeatedId;
      this.#endRepetition(placement);
      return;
    }
    if (open === null || (runId !== null && runId !== open.id)) return;
    placement.turnId = open.id;
    const metadata = readInterlude(placement.entry.event);
    this.claim(placement, metadata);
    const places = this.#writablePlaces();
    places.openTurn = {
      ...open,
      trigger: metadata.trigger ?? open.trigger,
      userMessageIds: metadata.userMessageIds === undefined ? open.userMessageIds : stringList(metadata.userMessageIds),
    };
    this.#close(placement, end.state, end.error, metadata.inferred);
  }

  /** Places a person's message in a `none` turn until a turn answers it. */
  openUserMessage(placement: Placement, id: string): void {
    if (this.#hasPlace(id)) this.startEntity(placement, 'text', id, null);
    else this.#placeUserMessage(placement, id);
  }

  /** True if the message of a person already has a place. */
  #hasPlace(id: string): boolean {
    return this.#places.openTurn?.userMessageIds.includes(id) === true || this.#home('text', id) !== undefined;
  }

  #placeUserMessage(placement: Placement, id: string): void {
    const { entry } = placement;
    this.#endRepetition(placement);
    const places = this.#writablePlaces();
    const open = places.openTurn;
    const waiting = places.userMessages.find((message) => message.id === id);
    const isQueued = readInterlude(entry.event).delivery === 'queued';
    let turnId: string;
    // A queued message has not reached the agent, so the open turn does not answer it.
    if (places.awaitsMessage && open !== null && !waiting && !isQueued && open.userMessageIds.length < MAX_NAMED) {
      // The open turn answers this message, which the agent reports late.
      turnId = open.id;
      places.openTurn = { ...open, userMessageIds: [...open.userMessageIds, id] };
      placement.turns.push(places.openTurn);
    } else {
      turnId = waiting?.turnId ?? this.#openNoneTurn(placement);
      const added = {
        id,
        runId: null,
        turnId,
        position: entry.position,
        ...(isQueued ? { queued: true as const } : {}),
      };
      if (waiting === undefined) places.userMessages = appendBounded(places.userMessages, added);
      else if (waiting.queued && !isQueued) this.#markArrived(waiting);
    }
    placement.turnId = turnId;
    this.#setHome('text', id, { turnId, position: entry.position, role: 'user', streaming: null });
  }

  /** Places a delivery event. Nothing is shown once a turn has claimed the message. */
  placeDelivery(placement: Placement, id: string, arrived: boolean): void {
    const waiting = this.#places.userMessages.find((message) => message.id === id);
    if (waiting === undefined) return;
    placement.turnId = waiting.turnId;
    if (arrived && waiting.queued) this.#markArrived(waiting);
  }

  /** Places an event with its entity. @returns false for an entity without a known place */
  join(placement: Placement, kind: string, id: string): boolean {
    const home = this.#home(kind, id);
    if (home === undefined) return false;
    placement.turnId = home.turnId;
    return true;
  }

  /** Drops the state of removed turns, which started up to a position. */
  removeUpTo(placement: Placement, upTo: Position): void {
    const isLater = ({ position }: { position: Position }) => comparePositions(position, upTo) > 0;
    placement.removedUpTo = upTo;
    const places = this.#writablePlaces();
    if (places.outside !== null && !isLater(places.outside)) places.outside = null;
    places.userMessages = places.userMessages.filter(isLater);
    places.endedTasks = places.endedTasks.filter(isLater);
    if (places.finished !== undefined) places.finished = places.finished.filter(isLater);
    if (places.tasksTold !== undefined) places.tasksTold = places.tasksTold.filter(isLater);
    for (const [key, home] of [...this.#writableHomes()]) {
      if (!isLater(home) && !home.turnId.startsWith('task:')) this.#writableHomes().delete(key);
    }
  }

  #markArrived(waiting: Unanswered): void {
    const places = this.#writablePlaces();
    const { queued: _queued, ...arrived } = waiting;
    places.userMessages = places.userMessages.map((message) => (message === waiting ? arrived : message));
  }

  startTask(placement: Placement, id: string, runId: string | null): void {
    if (this.#isRepeatedReport(placement, [id, runId, 'started'])) placement.turnId = `task:${id}`;
    else this.show(placement);
  }

  /**
   * True if the event repeats the task's newest known start or end. A start after an end is another run. Marks a
   * repetition as `again` for later readers, because retention may remove the first report.
   */
  #isRepeatedReport(
    placement: Placement,
    [id, runId, phase]: [id: string, runId: string | null, phase: string],
  ): boolean {
    const { entry, isRepeated = false } = placement;
    const { tasksTold: reports = [] } = this.#places;
    const task = JSON.stringify([id, runId]);
    const isKnown = reports.some((report) => report.task === task && report.phase === phase);
    if (isKnown || isRepeated || readInterlude(entry.event).again === true) {
      placement.entry = { ...entry, event: withInterlude(entry.event, { again: true }) };
      return true;
    }
    const others = reports.filter((report) => report.task !== task);
    this.#writablePlaces().tasksTold = [...others, { task, phase, position: entry.position }].slice(-MAX_TASK_REPORTS);
    return false;
  }

  /** Places a task's end, or a report about another session's task, until a turn answers it. */
  endTask(
    placement: Placement,
    id: string,
    runId: string | null,
    about: Pick<Unanswered, 'ofSessionId' | 'isToldElsewhere'> = {},
    phase?: string,
  ): void {
    const isOwnTask = about.ofSessionId === undefined && about.isToldElsewhere === undefined;
    if (isOwnTask && phase !== undefined && this.#isRepeatedReport(placement, [id, runId, phase])) {
      placement.turnId = `task:${id}`;
      return;
    }
    const turnId = this.openTurnId ?? this.#openNoneTurn(placement);
    placement.turnId = turnId;
    const places = this.#writablePlaces();
    const { position } = placement.entry;
    places.endedTasks = appendBounded(places.endedTasks, { id, runId, turnId, position, ...about });
  }

  openEntity(placement: Placement, kind: string, id: string, task: string | null): void {
    const known = this.#home(kind, id);
    if (known !== undefined) {
      placement.turnId = known.turnId;
      placement.role = known.role ?? placement.role;
      return;
    }
    const turnId = task === null ? this.#currentTurn(placement) : `task:${task}`;
    placement.turnId = turnId;
    this.#setHome(kind, id, { turnId, position: placement.entry.position, role: placement.role, streaming: null });
  }

  /** Opens an entity in a given turn, which may be closed, unless the entity already has a place. */
  openInTurn(placement: Placement, kind: string, id: string, turnId: string): void {
    if (this.#home(kind, id) === undefined) {
      this.#setHome(kind, id, { turnId, position: placement.entry.position, role: null, streaming: null });
    }
    this.join(placement, kind, id);
  }

  /** Keeps the place of an entity that now has another id. */
  replaceEntity(placement: Placement, kind: string, replaced: string, id: string): void {
    const home = this.#home(kind, replaced);
    if (home === undefined || replaced === id) return;
    this.#writableHomes().delete(`${kind}:${replaced}`);
    this.#setHome(kind, id, { ...home, position: placement.entry.position });
  }

  /** Places a START event. A repeated one restarts the entity in its place; only later deltas fold into it. */
  startEntity(placement: Placement, kind: string, id: string, task: string | null): void {
    const known = this.#home(kind, id);
    this.openEntity(placement, kind, id, task);
    if (known !== undefined) this.#setHome(kind, id, { ...known, position: placement.entry.position, streaming: null });
  }

  /** Places a chunk, which may open, continue and end its entity. */
  openChunk(placement: Placement, kind: string, id: string, task: string | null): void {
    if (placement.role === 'user' && task === null && !this.#hasPlace(id)) this.#placeUserMessage(placement, id);
    else this.openEntity(placement, kind, id, task);
    const home = this.#home(kind, id);
    if (home === undefined) return;
    placement.startPosition = this.#visibleStart(home);
    this.markChunked(kind, id);
  }

  /** Marks an entity with text in a chunk: its deltas are incomplete and don't fold. */
  markChunked(kind: string, id: string): void {
    const home = this.#home(kind, id);
    if (home !== undefined && isFoldable(home)) this.#setHome(kind, id, { ...home, streaming: 'chunks' });
  }

  continueEntity(placement: Placement, kind: string, id: string, task: string | null, streaming: FoldedType): void {
    const known = this.#home(kind, id);
    if (known === undefined && kind === 'text') placement.role = 'assistant';
    this.openEntity(placement, kind, id, task);
    const home = known ?? this.#home(kind, id);
    if (home === undefined || home.streaming !== null) return;
    // Without a START row, the entity starts at its first delta, and folding would move it.
    this.#setHome(kind, id, { ...home, streaming: known === undefined ? 'never' : streaming });
  }

  endEntity(placement: Placement, kind: string, id: string, keep: boolean): void {
    const home = this.#home(kind, id);
    if (home === undefined) {
      placement.turnId ??= this.openTurnId;
      return;
    }
    placement.turnId = home.turnId;
    placement.role = home.role;
    placement.startPosition = this.#visibleStart(home);
    this.#fold(placement, id, home);
    if (keep) this.#setHome(kind, id, folded(home));
    else this.#writableHomes().delete(`${kind}:${id}`);
  }

  /** Start of an entity in the open turn or outside any turn. Null without a START: the entity may be older. */
  #visibleStart(home: Home): Position | null {
    if (home.streaming === 'never') return null;
    return home.turnId === this.openTurnId || home.turnId.startsWith('none:') ? home.position : null;
  }

  #close(placement: Placement, state: TurnHeader['state'], error: TurnHeader['error'], inferred?: true): void {
    const places = this.#writablePlaces();
    const open = places.openTurn;
    if (open === null) return;
    // After an interruption by the next run, late events of this turn still belong to it.
    this.#closeHomes(
      placement,
      open.id,
      state,
      state === 'interrupted' && error === null && placement.turnId !== open.id,
    );
    if (state === 'finished') {
      const { id: turnId, position } = open;
      const finished = { id: turnId, position, messageId: open.userMessageIds.at(-1) ?? null };
      places.finished = [...(places.finished ?? []).filter(({ id }) => id !== turnId), finished].slice(-MAX_FINISHED);
    }
    const endedAt = placement.entry.occurredAt;
    placement.turns.push({ ...open, state, error, endedAt, ...(inferred === undefined ? {} : { inferred }) });
    places.openTurn = null;
    delete places.awaitsMessage;
  }

  #closeHomes(placement: Placement, turnId: string, state: TurnHeader['state'], staysOpen: boolean): void {
    for (const [key, home] of [...this.#writableHomes()]) {
      if (home.turnId !== turnId) continue;
      this.#fold(placement, key.slice(key.indexOf(':') + 1), home);
      // The next user message may answer a tool call or question of a turn that did not fail. Commands outlive the turn.
      if (key.startsWith('command:') || staysOpen || (state === 'finished' && /^(tool|request):/.test(key)))
        this.#setHomeKey(key, folded(home));
      else this.#writableHomes().delete(key);
    }
  }

  #claimMessages(placement: Placement, ids: readonly string[]): void {
    const turnId = placement.turnId;
    if (turnId === null || ids.length === 0) return;
    if (this.#places.userMessages.length === 0) return;
    const named = new Set(ids);
    const found = new Set(this.#places.userMessages.filter((message) => named.has(message.id)));
    if (found.size === 0) return;
    for (const message of found) {
      this.#move(placement, message, turnId, null);
      const home = this.#home('text', message.id);
      // Another message with the same id may have started elsewhere.
      if (home?.turnId === message.turnId) this.#setHome('text', message.id, { ...home, turnId });
    }
    const places = this.#writablePlaces();
    places.userMessages = places.userMessages.filter((message) => !found.has(message));
  }

  #move(placement: Placement, item: Unanswered, toTurnId: string, position: Placement['moves'][number]['position']) {
    if (item.turnId === toTurnId) return;
    placement.moves.push({ entityId: item.id, fromTurnId: item.turnId, toTurnId, position });
    if (item.turnId === `none:${item.position}`) placement.removedTurnIds.push(item.turnId);
  }

  #fold(placement: Placement, entityId: string, home: Home): void {
    if (home.streaming === null || !isFoldable(home)) return;
    placement.folds.push({ entityId, fromPosition: home.position, type: home.streaming as FoldedType });
  }

  #currentTurn(placement: Placement): string {
    if (this.#places.openTurn !== null) {
      if (this.#places.awaitsMessage && placement.role !== 'user') delete this.#writablePlaces().awaitsMessage;
      return this.#places.openTurn.id;
    }
    if (this.#repeatedTurnId !== undefined) return this.#repeatedTurnId;
    if (this.#places.outside !== null) return this.#places.outside.id;
    const turnId = this.#openNoneTurn(placement);
    this.#writablePlaces().outside = placement.turns.at(-1) ?? null;
    return turnId;
  }

  /** Opens a `none` turn for this event alone, which a move can remove. */
  #openNoneTurn(placement: Placement): string {
    const { position, occurredAt } = placement.entry;
    const id = `none:${position}`;
    placement.turns.push(noneTurn(id, position, occurredAt));
    placement.turnId = id;
    // Later events must follow this one, so they may not join an older `none` turn.
    this.#writablePlaces().outside = null;
    return id;
  }

  #home(kind: string, id: string): Home | undefined {
    const key = `${kind}:${id}`;
    if (this.#homes !== null) return this.#homes.get(key);
    return Object.hasOwn(this.#places.homes, key) ? this.#places.homes[key] : undefined;
  }

  #setHome(kind: string, id: string, home: Home): void {
    this.#setHomeKey(`${kind}:${id}`, home);
  }

  #setHomeKey(key: string, home: Home): void {
    const homes = this.#writableHomes();
    homes.set(key, home);
    if (homes.size > MAX_TRACKED) for (const oldest of homes.keys()) return void homes.delete(oldest);
  }

  #writableHomes(): Map<string, Home> {
    this.#homes ??= new Map(Object.entries(this.#places.homes));
    return this.#homes;
  }

  #writablePlaces(): TurnPlaces {
    if (!this.#isCopied) {
      this.#places = { ...this.#places };
      this.#isCopied = true;
    }
    return this.#places;
  }
}

function appendBounded(list: readonly Unanswered[], entry: Unanswered): Unanswered[] {
  return [...list.slice(-(MAX_TRACKED - 1)), entry];
}
