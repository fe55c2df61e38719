import { describe, expect, it } from 'vitest';
import { FleetStore } from '@/components/live/fleet-store';
import { TaskIndex } from '@/components/tasks/task-index';
import { orderTasks } from '@/components/tasks/task-panel';
import { isBoilerplate, taskOutcome } from '@/components/tasks/task-words';

import { aTask } from './rows';

describe('tasks', () => {
  const [first, second] = [
    aTask({ position: '10', runId: 'run-a', description: 'first' }),
    aTask({ position: '50', runId: 'run-b', description: 'second' }),
  ];
  const index = new TaskIndex([first, second]);

  it('distinguishes two runs of one id by their start', () => {
    expect(index.find({ id: 't1', runId: null, position: '50' })).toBe(second);
    expect(index.find({ id: 't1', runId: null, position: '10' })).toBe(first);
  });

  it('distinguishes runs by their run id', () => {
    expect(index.find({ id: 't1', runId: 'run-a', position: '90' })).toBe(first);
  });

  it('falls back to the newest run started by then', () => {
    expect(index.find({ id: 't1', runId: null, position: '30' })).toBe(first);
    expect(index.find({ id: 't1', runId: null, position: '60' })).toBe(second);
    expect(index.find({ id: 't1', runId: null, position: null })).toBe(second);
  });

  it('finds nothing for an unknown id', () => {
    expect(index.find({ id: 'other', runId: null, position: null })).toBeNull();
  });

  it('keeps the identity of unchanged rows', () => {
    const changed = { ...second, status: 'failed' as const };
    const fleet = new FleetStore();
    fleet.putTasks('s', { position: '60', tasks: [first, second] });
    fleet.applyFrames([
      { event: 'task', id: '70', data: aTask({ position: '70' }) },
      { event: 'task', id: '71', data: changed },
    ]);
    const rows = fleet.tasks.list('s')?.rows ?? [];
    expect(rows.map((task) => task.position)).toEqual(['10', '50', '70']);
    expect(rows[0]).toBe(first);
    expect(rows[1]).toBe(changed);
  });

  it('lists running tasks first, each group newest first', () => {
    const tasks = [
      aTask({ position: '9', status: 'completed' }),
      aTask({ position: '10', status: 'failed' }),
      aTask({ position: '8' }),
      aTask({ position: '11' }),
    ];
    expect(orderTasks(tasks).map((task) => task.position)).toEqual(['11', '8', '10', '9']);
  });

  it('shows an exit code only if it adds to the status', () => {
    expect(taskOutcome(aTask({ status: 'failed', exitCode: 3 }))).toBe('failed, exit 3');
    expect(taskOutcome(aTask({ status: 'completed', exitCode: 0 }))).toBe('completed');
    expect(taskOutcome(aTask({ status: 'running' }))).toBe('running');
  });

  it('recognizes a summary that only repeats the outcome', () => {
    expect(isBoilerplate({ summary: 'Background command "Poll" failed with exit code 3' })).toBe(true);
    expect(isBoilerplate({ summary: 'Three events can vanish' })).toBe(false);
    expect(isBoilerplate({ summary: null })).toBe(false);
  });
});
