import { fieldsOf, numberOf, parseJson, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';

/** Up to where the messages of a server were told: what another adapter must know to go on. */
export interface Place {
  /** Counts the processes of the server. */
  epoch: number;
  /** The last message of a person: by its time, the process is known. */
  user: { id: number; time: string } | null;
  agent: { id: number; text: string; stretch: number } | null;
  errorAt: string;
}

/** Of a longer message its beginning: what comes to it later may then be told once more. */
const MAX_PLACE_TEXT = 64 * 1024;

export const NOWHERE: Place = { epoch: 0, user: null, agent: null, errorAt: '' };

export function placeOf(text: string | null): Place {
  const { epoch, user, agent, errorAt } = fieldsOf(parseJson(text ?? ''));
  const [person, program] = [fieldsOf(user), fieldsOf(agent)];
  const [userId, agentId] = [numberOf(person.id), numberOf(program.id)];
  return {
    epoch: numberOf(epoch) ?? 0,
    user: userId === null ? null : { id: userId, time: textOf(person.time) ?? '' },
    agent:
      agentId === null
        ? null
        : { id: agentId, text: textOf(program.text) ?? '', stretch: numberOf(program.stretch) ?? 0 },
    errorAt: textOf(errorAt) ?? '',
  };
}

/** As it is stored. */
export function placeText(place: Place): string {
  const { agent } = place;
  return JSON.stringify({ ...place, agent: agent && { ...agent, text: truncateText(agent.text, MAX_PLACE_TEXT) } });
}
