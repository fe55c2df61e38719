import { fieldsOf } from '@interlude/protocol/fields';
import { idOf, type NativeEvent } from '../../adapters/opencode/native-event';
import type { SourceSurroundings } from '../../host/source';
import type { Cursor } from '../../outbox/statements';

/** What is stored with the events of OpenCode's sessions, so that the next process goes on behind them. */
const PLACE = 'opencode-place:';
const SAID = 'opencode-said:';
const TOLD = 'opencode-told:';
const BEGUN = 'opencode-begun:';

export class OpencodeMemory {
  /** By session of OpenCode, the place in its history up to which everything is stored. */
  readonly places: Map<string, number>;
  /** By session of OpenCode, the part of which something was said before it was whole. */
  readonly said: Map<string, string>;
  /** By session of OpenCode, the newest message of which anything was told. Their ids rise. */
  readonly begun: Map<string, string>;
  /** Root sessions that were told of, with the dashboard's sessions. */
  readonly told: Map<string, string>;

  static async recall(around: Pick<SourceSurroundings, 'cursors'>): Promise<OpencodeMemory> {
    const read = async (prefix: string) =>
      new Map([...(await around.cursors(prefix))].map(([name, value]) => [name.slice(prefix.length), value]));
    const [places, said, begun, told] = [await read(PLACE), await read(SAID), await read(BEGUN), await read(TOLD)];
    return new OpencodeMemory({
      places: new Map([...places].map(([id, place]) => [id, Number(place)])),
      ...{ said, begun, told },
    });
  }

  private constructor({ places, said, begun, told }: Pick<OpencodeMemory, 'places' | 'said' | 'begun' | 'told'>) {
    this.places = places;
    this.said = said;
    this.begun = begun;
    this.told = told;
  }

  /** What of it is to be stored with what an event says. */
  of({ type, session, seq, data }: NativeEvent): Cursor[] {
    if (session === null) return [];
    const place = seq === null ? [] : this.#reached(session, seq);
    const messageId = type === 'message.updated' ? idOf(fieldsOf(data.info).id) : null;
    const partId = type === 'message.part.delta' ? idOf(data.partID) : null;
    return [
      ...place,
      ...(messageId === null ? [] : this.begins(session, messageId)),
      ...(partId === null ? [] : this.#says(session, partId)),
    ];
  }

  isTold({ session, seq }: NativeEvent): boolean {
    return session !== null && seq !== null && seq <= (this.places.get(session) ?? -1);
  }

  begins(session: string, messageId: string): Cursor[] {
    if (messageId <= (this.begun.get(session) ?? '')) return [];
    this.begun.set(session, messageId);
    return [{ name: BEGUN + session, value: messageId }];
  }

  #reached(session: string, place: number): Cursor[] {
    if (place <= (this.places.get(session) ?? -1)) return [];
    this.places.set(session, place);
    return [{ name: PLACE + session, value: `${place}` }];
  }

  #says(session: string, partId: string): Cursor[] {
    if (this.said.get(session) === partId) return [];
    this.said.set(session, partId);
    return [{ name: SAID + session, value: partId }];
  }

  tells(root: string, sessionId: string): Cursor[] {
    this.told.set(root, sessionId);
    return [{ name: TOLD + root, value: sessionId }];
  }

  /** The session of OpenCode that was made for one of the dashboard's. */
  rootFor(sessionId: string): string | null {
    for (const [root, told] of this.told) if (told === sessionId) return root;
    return null;
  }
}
