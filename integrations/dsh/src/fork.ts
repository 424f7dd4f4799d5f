/**
 * The live door: the host itself makes the child, through its own store, so that its
 * own rules and its own writer apply. The source is never changed.
 */

import { pluginMessage, type Context, type Session } from './host.ts'

export interface ForkRequest {
  readonly session: string
  /** Inclusive position of the cut; `null`: before everything, an empty child. */
  readonly boundary: number | null
  readonly child?: string
  /** What the child's model is told, at the tail. */
  readonly notice?: string
}

/** An error of the host's store, with its code (000-19). */
export class ForkError extends Error {
  readonly code: string
  constructor(message: string, code: string) {
    super(message)
    this.name = 'ForkError'
    this.code = code
  }
}

/** A part of the context that can be unloaded on its own: what the host's store holds for it is let go then. */
interface Scope {
  readonly ctx: Context
  dispose(): Promise<void>
}

async function scopeOf(ctx: Context): Promise<Scope> {
  return new Promise(resolve => {
    const fiber = ctx.inject(['sessions'], inner =>
      // The fiber is known only after this call has returned.
      queueMicrotask(() => resolve({ ctx: inner, dispose: async () => void (await (fiber as { dispose?: () => unknown } | undefined)?.dispose?.()) })),
    )
  })
}

/**
 * Forks a live session and lets go of the child once it is on the disk, so that any front end can resume it. Its id.
 *
 * @throws with the host's codes: SESSION_NOT_FOUND, SESSION_NOT_LIVE, SESSION_ALREADY_EXISTS, INVALID_BOUNDARY, OPEN_TURN.
 */
export async function forkLive(ctx: Context, request: ForkRequest): Promise<string> {
  const source = ctx.sessions.get(request.session)
  if (source === undefined) throw new ForkError(`session ${request.session} is not open in this host`, 'SESSION_NOT_LIVE')
  await ctx.sessions.flush(source)
  // The host's own numbers begin anew with each process and would meet a stored session of the same name.
  const id = request.child ?? `session-${crypto.randomUUID()}`
  const scope = await scopeOf(ctx)
  try {
    const child = request.boundary === null ? empty(scope.ctx, source, id) : scope.ctx.sessions.fork(source, request.boundary, id)
    // A notice that fails never fails the rewind (002-38); an unfinished child must not stay.
    if (request.notice !== undefined) child.append('user/message', pluginMessage(request.notice), { surfaceOp: 'append' })
    await scope.ctx.sessions.flush(child)
    return child.id
  } finally {
    await scope.dispose()
  }
}

function empty(ctx: Context, source: Session, child: string): Session {
  const { cwd } = source.header
  return ctx.sessions.create(child, { meta: { ...(cwd === undefined ? {} : { cwd }), parentSession: source.id, seedLength: 0 } })
}
