/**
 * Undo for agents on DeepSeek Harness: a thin plugin over `rwd sidecar`. It captures on the host's hooks, offers the
 * tools and commands of the systems it replaces, and lets the host fork its own sessions. It writes nothing of its own
 * into a session's log.
 */

import { mountBarriers, hostHasBarriers } from './barriers.ts'
import { findProgram } from './binary.ts'
import { Captures } from './capture.ts'
import { Commands } from './commands.ts'
import { readConfig } from './config.ts'
import type { Agent, Context } from './host.ts'
import { Marks, markTools, promptSection } from './marks.ts'
import { Named, namedTools } from './named.ts'
import { checkpointsProjection } from './projection.ts'
import { Turns, turnTools } from './turns.ts'
import { SidecarEngine } from './wire.ts'

export { Config } from './config.ts'
export type { CheckpointService } from './marks.ts'

export const name = 'rwd'

/** Services without which the row waits; everything else is asked for where it exists. */
export const inject = ['subprocess', 'sessions', 'tools']

export function apply(ctx: Context, raw?: unknown): void {
  const { config, warnings } = readConfig(raw)
  if (!config.enabled) return
  const log = ctx.logger
  for (const warning of warnings) log.warn(`rwd: ${warning}`)
  const engine: SidecarEngine = new SidecarEngine({
    ctx,
    config,
    log,
    find: () => findProgram(ctx.subprocess),
    gone: () => captures.forget(),
    tellModel: (session, text) => captures.tellModel(session, text),
  })
  const captures: Captures = new Captures({ ctx, config, engine, log, turnClosed: (session, event) => named.turnClosed(session, event) })
  const named = new Named({ ctx, config, engine, captures, log })
  const turns = new Turns({ ctx, config, engine, captures })
  const marks = new Marks({ ctx, config, engine, captures, log })
  log.info(`rwd: checkpoint_restore by the model: ${config.mayRestore}; guard: ${config.preRewindCheckpoint}`)

  captures.listen()
  if (config.barriers === 'on' || (config.barriers === 'auto' && !hostHasBarriers(ctx))) mountBarriers(ctx)
  for (const definition of [...turnTools(turns), ...markTools(marks, config), ...namedTools(named)]) ctx.tools.register(definition)
  ctx.provide('checkpoint', marks.service())
  ctx.on('agent/turn-stopping', (({ agent, turn }: { agent: Agent; turn: number }) => marks.turnStopping(agent, turn)) as never)

  ctx.inject(['commands'], inner => {
    for (const command of new Commands({ ctx, config, engine, captures, turns }).definitions()) inner.commands.register(command)
  })
  ctx.inject(['systemPrompt'], inner => void inner.systemPrompt.section(promptSection(config)))
  ctx.inject(['sessionProjections'], inner => void inner.sessionProjections.register(checkpointsProjection()))

  // The first walk of a workspace is made before its first turn, not in it.
  ctx.on('agent/created', (({ agent }: { agent: Agent }) => {
    if (agent.session.header.cwd !== undefined) void captures.open(agent.session).catch(() => undefined)
  }) as never)
  // The host ends everything at the same time: what is under way is finished, nothing new is started.
  ctx.effect(
    () => async () => {
      engine.close()
      await captures.settle()
      await engine.end()
    },
    'rwd',
  )
}
