import {
  Bot,
  CircleHelp,
  FileDiff,
  FileText,
  FolderSearch,
  Globe,
  type IconNode,
  ListTodo,
  Search,
  SquareTerminal,
  Timer,
  Wrench,
} from 'lucide';
import { Icon } from '@/components/ui/icon';

const ICONS: [RegExp, IconNode][] = [
  [/^(?:bash|shell|terminal|exec|powershell|monitor)/i, SquareTerminal],
  [/^(?:edit|multiedit|write|notebookedit|apply_patch|str_replace)/i, FileDiff],
  [/^(?:read|view|cat|open)/i, FileText],
  [/^(?:grep|search|rg)/i, Search],
  [/^(?:glob|ls|list|find)/i, FolderSearch],
  [/^web/i, Globe],
  [/^(?:task(?:create|update|get|list)|todo)/i, ListTodo],
  [/^(?:agent|task)/i, Bot],
  [/^(?:askuser|question)/i, CircleHelp],
  [/^(?:cron|schedule|sleep|wait)/i, Timer],
];

export function ToolIcon({ name }: { name: string }) {
  const sign = ICONS.find(([pattern]) => pattern.test(name))?.[1] ?? Wrench;
  return <Icon of={sign} size={13} strokeWidth={1.75} className="shrink-0 text-ink-3" />;
}
