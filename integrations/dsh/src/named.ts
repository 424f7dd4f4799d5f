/**
 * System 003: named boundaries across turns. The lines in `.dsh/memory/checkpoints.md` are written by the engine, which
 * holds a lock and replaces the file as a whole (K-43); the fork is the host's.
 */

import type { Captures } from './capture.ts'
import type { Config } from './config.ts'
import type { Engine } from './engine.ts'
import { forkLive } from './fork.ts'
import { eventsOf, type Agent, type Context, type Logger, type Session, type SessionEvent, type ToolDefinition } from './host.ts'
import { closedTurns, isRoot, reasonOf } from './log.ts'
import { list, object, TEXT, tool, WHOLE } from './tool.ts'

export interface NamedParts {
  readonly ctx: Context
  readonly config: Config
  readonly engine: Engine
  readonly captures: Captures
  readonly log: Logger
}

const coded = (code: string, message: string): Error => Object.assign(new Error(message), { code })

/** A label that cannot forge or break a line (K-42). What is wrong with it, or nothing. */
export function badLabel(label: string): string | undefined {
  if (label.trim() === '' || label !== label.trim()) return 'a label must not be blank or begin or end with a space'
  if (/[\r\n]/.test(label) || label.includes(' | ')) return 'a label must be one line without " | "'
  return label.length > 200 ? 'a label has at most 200 characters' : undefined
}

/** A note in one line; what would end it is turned into spaces (K-42). */
const oneLine = (note: string): string => note.replace(/\s*[\r\n]+\s*/g, ' ').replaceAll(' | ', ' / ').trim()

export class Named {
  readonly #parts: NamedParts

  constructor(parts: NamedParts) {
    this.#parts = parts
  }

  /** One line for the last completed turn of a session (003-01). */
  async set(caller: Agent, label: string, note: string | undefined, sessionId: string | undefined): Promise<{ label: string; session: string; seq: number }> {
    const wrong = badLabel(label)
    if (wrong !== undefined) throw coded('BAD_LABEL', wrong)
    const { ctx, config, engine, captures } = this.#parts
    const session = sessionId === undefined || sessionId === caller.session.id ? caller.session : ctx.sessions.get(sessionId)
    if (session === undefined) throw coded('SESSION_NOT_LIVE', `session ${sessionId ?? ''} is not open in this host`)
    if (closedTurns(eventsOf(session)).length === 0) throw coded('NO_COMPLETED_TURN', 'no turn of this session has ended yet')
    await captures.open(session)
    const said = note === undefined ? '' : oneLine(note)
    const set = await captures.inOrder(session, async () => {
      // The engine takes the last completed turn from the log on the disk.
      await ctx.sessions.flush(session)
      return engine.nameSet(session.id, { kind: 'manual', label, limit: config.namedPointLimit, ...(said === '' ? {} : { note: said }) })
    })
    return { label: set.label, session: set.session, seq: set.seq }
  }

  async list(caller: Agent): Promise<readonly { label: string; session: string; seq: number; note?: string }[]> {
    const { engine, captures } = this.#parts
    await captures.open(caller.session)
    return engine.nameList(caller.session.id)
  }

  /** Forks the session at the newest boundary of that name (003-03). A place that is none any more is refused by the host (K-45). */
  async rewind(caller: Agent, sessionId: string, label: string): Promise<{ childSessionId: string; seq: number }> {
    const { ctx } = this.#parts
    const lines = await this.list(caller)
    const found = lines.findLast(line => line.label === label && line.session === sessionId)
    if (found === undefined) {
      const others = lines.filter(line => line.label === label)
      throw others.length > 0
        ? coded('LABEL_OF_OTHER_SESSION', `${label} belongs to session ${others.map(line => line.session).join(', ')}`)
        : coded('LABEL_NOT_FOUND', `there is no checkpoint ${label}`)
    }
    const notice = `[rwd] This conversation was rewound to checkpoint ${label}. The files of the workspace were left as they are: read a file again before you edit it.`
    return { childSessionId: await forkLive(ctx, { session: sessionId, boundary: found.seq, notice }), seq: found.seq }
  }

  /** The automatic line of a turn that has ended, in sessions of people only (003-06). Never fails the turn. */
  async turnClosed(session: Session, event: SessionEvent): Promise<void> {
    const { config, engine, captures, log } = this.#parts
    if (!isRoot(session.header)) return
    const kind = reasonOf(event) === 'error' ? 'auto-error' : 'auto-turn'
    try {
      await captures.inOrder(session, () => engine.nameSet(session.id, { kind, limit: config.namedPointLimit }))
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'NO_ENGINE') log.warn(`${kind} was not noted: ${(error as Error).message}`)
    }
  }
}

function agentOf(agent: Agent | undefined): Agent {
  if (agent === undefined) throw coded('NO_SESSION', 'this tool needs the session of an agent')
  return agent
}

const LINE = { label: TEXT, session: TEXT, seq: WHOLE, 'note?': TEXT }

export function namedTools(named: Named): ToolDefinition[] {
  return [
    tool<{ label: string; note?: string; sessionId?: string }>({
      name: 'agent_checkpoint',
      description: 'Name the end of the last completed turn, so that a session can be forked there later.',
      arguments: {
        label: { type: 'string', description: 'The name', required: true },
        note: { type: 'string', description: 'What it is' },
        sessionId: { type: 'string', description: 'A session other than this one' },
      },
      answer: object({ label: TEXT, session: TEXT, seq: WHOLE }),
      render: (value: { label: string; seq: number }) => `checkpoint ${value.label} at ${value.seq}`,
      run: async ({ label, note, sessionId }, exec) => ({ ...(await named.set(agentOf(exec.agent), label, note, sessionId)) }),
    }),
    tool<{ sessionId: string; label: string }>({
      name: 'agent_rewind',
      description: 'Fork a session at a named checkpoint. Files stay as they are; the answer names the child session.',
      arguments: {
        sessionId: { type: 'string', description: 'The session that has the checkpoint', required: true },
        label: { type: 'string', description: 'Its name', required: true },
      },
      answer: object({ childSessionId: TEXT, seq: WHOLE }),
      render: (value: { childSessionId: string }) => `forked into ${value.childSessionId}`,
      run: async ({ sessionId, label }, exec) => ({ ...(await named.rewind(agentOf(exec.agent), sessionId, label)) }),
    }),
    tool<Record<string, never>>({
      name: 'agent_checkpoint_list',
      description: 'List the named checkpoints of this workspace.',
      arguments: {},
      answer: object({ checkpoints: list(object(LINE)) }),
      reads: true,
      render: (value: { checkpoints: readonly { label: string; session: string; seq: number; note?: string }[] }) =>
        value.checkpoints.length === 0
          ? 'no checkpoints'
          : value.checkpoints.map(line => `${line.label} | session=${line.session} | seq=${line.seq}${line.note === undefined ? '' : ` | ${line.note}`}`).join('\n'),
      run: async (_args, exec) => ({
        checkpoints: (await named.list(agentOf(exec.agent))).map(({ label, session, seq, note }) => ({ label, session, seq, ...(note === undefined ? {} : { note }) })),
      }),
    }),
  ]
}
