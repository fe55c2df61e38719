import { Section } from './section';

const COMMANDS = [
  { command: 'db backup <file>', about: 'a copy of one moment, which is a database that Interlude opens' },
  { command: 'db check', about: 'whether everything in it is sound' },
  { command: 'db vacuum', about: 'gives free space of a file back to its disk' },
  { command: 'db copy <from> <to>', about: 'all of it to another file or libSQL server' },
] as const;

/** What whoever runs the server can do with its database, and only there. */
export function DatabaseCommands() {
  return (
    <Section
      title="Looking after it"
      about={
        <>
          On the machine of the dashboard, while it runs; <code className="text-ink-2">docs/database.md</code> has the
          details.
        </>
      }
    >
      <dl className="space-y-2 text-xs">
        {COMMANDS.map(({ command, about }) => (
          <div key={command}>
            <dt>
              <code className="[overflow-wrap:anywhere]">npm run -s interlude -- {command}</code>
            </dt>
            <dd className="text-ink-3">{about}</dd>
          </div>
        ))}
      </dl>
    </Section>
  );
}
