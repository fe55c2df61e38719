import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';

export interface Choice {
  id: string;
  name: string;
}

const MAX_CHOICES = 200;
const MAX_DESCRIPTION = 200;

/**
 * Modes, models and commands of a session. Agents report them as `modes` and `models`, as `configOptions`, or both.
 *
 * @see ACP v1, SessionModeState, SessionConfigOption
 */
export class Settings {
  mode: Choice | null = null;
  model: Choice | null = null;
  modes: Choice[] = [];
  models: Choice[] = [];
  /** Config options that set mode and model; null if the older requests do. */
  readonly configIds: { mode: string | null; model: string | null } = { mode: null, model: null };
  commands: { name: string; description?: string }[] = [];

  /** Response to `session/new` or `session/load`. */
  opened({ modes, models, configOptions }: Fields): void {
    const ofModes = fieldsOf(modes);
    if (Array.isArray(ofModes.availableModes)) this.modes = choicesOf(ofModes.availableModes, 'id');
    this.mode = this.#mode(ofModes.currentModeId) ?? this.mode;
    const ofModels = fieldsOf(models);
    if (Array.isArray(ofModels.availableModels)) this.models = choicesOf(ofModels.availableModels, 'modelId');
    this.model = choiceOf(this.models, ofModels.currentModelId) ?? this.model;
    this.configured(configOptions);
  }

  configured(options: unknown): void {
    for (const option of listOf(options)) {
      const { id, category, currentValue, options: values } = fieldsOf(option);
      if (category !== 'mode' && category !== 'model') continue;
      const choices = choicesOf(
        listOf(values).flatMap((one) => (Array.isArray(fieldsOf(one).options) ? listOf(fieldsOf(one).options) : [one])),
        'value',
      );
      this.configIds[category] = textOf(id);
      if (category === 'mode') [this.modes, this.mode] = [choices, choiceOf(choices, currentValue) ?? this.mode];
      else [this.models, this.model] = [choices, choiceOf(choices, currentValue) ?? this.model];
    }
  }

  modeChanged(id: unknown): void {
    this.mode = this.#mode(id) ?? this.mode;
  }

  commandsChanged(commands: unknown): void {
    this.commands = listOf(commands)
      .slice(0, MAX_CHOICES)
      .flatMap((one) => {
        const { name, description } = fieldsOf(one);
        const text = textOf(description);
        if (textOf(name) === null) return [];
        return [{ name: String(name), ...(text === null ? {} : { description: truncateText(text, MAX_DESCRIPTION) }) }];
      });
  }

  #mode(id: unknown): Choice | null {
    return choiceOf(this.modes, id);
  }
}

function choicesOf(values: unknown, idField: string): Choice[] {
  return listOf(values)
    .slice(0, MAX_CHOICES)
    .flatMap((value) => {
      const fields = fieldsOf(value);
      const id = textOf(fields[idField]);
      return id === null ? [] : [{ id, name: textOf(fields.name) ?? id }];
    });
}

/** An unlisted choice gets its id as name. */
function choiceOf(choices: readonly Choice[], id: unknown): Choice | null {
  const wanted = textOf(id);
  return wanted === null ? null : (choices.find((one) => one.id === wanted) ?? { id: wanted, name: wanted });
}
