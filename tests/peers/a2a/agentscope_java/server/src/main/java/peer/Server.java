package peer;

import io.a2a.spec.AgentCard;
import io.agentscope.core.ReActAgent;
import io.agentscope.core.a2a.server.AgentScopeA2aServer;
import io.agentscope.core.a2a.server.card.ConfigurableAgentCard;
import io.agentscope.core.a2a.server.executor.AgentExecuteProperties;
import io.agentscope.core.a2a.server.executor.runner.AgentRequestOptions;
import io.agentscope.core.a2a.server.executor.runner.AgentRunner;
import io.agentscope.core.a2a.server.executor.runner.ReActAgentWithBuilderRunner;
import io.agentscope.core.agent.Event;
import io.agentscope.core.agent.StreamOptions;
import io.agentscope.core.message.Msg;
import io.agentscope.core.message.ToolResultBlock;
import io.agentscope.core.tool.Tool;
import io.agentscope.core.tool.Toolkit;
import io.agentscope.spring.boot.a2a.controller.A2aJsonRpcController;
import io.agentscope.spring.boot.a2a.controller.AgentCardController;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;

/**
 * One AgentScope A2A server for each variant, in one process: POST /VARIANT, or /VARIANT_message
 * where the completed status repeats the answer.
 *
 * <p>Servers and controllers are AgentScope's own, put together as its starter does; only the paths
 * are new.
 */
@SpringBootApplication
@RestController
public class Server {

    private final Map<String, A2aJsonRpcController> answers = new HashMap<>();
    private final Map<String, AgentCardController> cards = new HashMap<>();

    public static void main(String[] args) {
        SpringApplication.run(Server.class, args);
    }

    Server() {
        Variant.ALL.forEach(
                (name, variant) -> {
                    add(name, variant, false);
                    add(name + "_message", variant, true);
                });
    }

    private void add(String path, Variant variant, boolean completeWithMessage) {
        AgentScopeA2aServer server =
                AgentScopeA2aServer.builder(runner(variant))
                        .agentCard(
                                new ConfigurableAgentCard.Builder()
                                        .name(path)
                                        .description(path)
                                        .url("http://127.0.0.1/" + path)
                                        .build())
                        .deploymentProperties(80)
                        .agentExecuteProperties(
                                AgentExecuteProperties.builder()
                                        .completeWithMessage(completeWithMessage)
                                        .requireInnerMessage(variant.inner())
                                        .build())
                        .build();
        answers.put(path, new A2aJsonRpcController(server));
        cards.put(path, new AgentCardController(server));
    }

    private static AgentRunner runner(Variant variant) {
        Toolkit toolkit = new Toolkit();
        toolkit.registerTool(new Regions());
        ReActAgent.Builder agent =
                ReActAgent.builder()
                        .name("peer")
                        .sysPrompt("Answer.")
                        .model(new ScriptedModel(variant.iterations()))
                        .toolkit(toolkit);
        return variant.incremental()
                ? ReActAgentWithBuilderRunner.newInstance(agent)
                : new SnapshotRunner(agent);
    }

    @PostMapping(
            value = "/{path}",
            consumes = MediaType.APPLICATION_JSON_VALUE,
            produces = {MediaType.APPLICATION_JSON_VALUE, MediaType.TEXT_EVENT_STREAM_VALUE})
    Object answer(
            @PathVariable("path") String path,
            @RequestBody String body,
            @RequestHeader Map<String, String> headers) {
        return answers.get(path).handleRequest(body, headers);
    }

    @GetMapping("/{path}/.well-known/agent-card.json")
    AgentCard card(@PathVariable("path") String path) {
        return cards.get(path).getAgentCard();
    }

    /** A runner of one's own, which asks for the text so far. */
    private record SnapshotRunner(ReActAgent.Builder agent) implements AgentRunner {

        @Override
        public String getAgentName() {
            return "peer";
        }

        @Override
        public String getAgentDescription() {
            return "peer";
        }

        @Override
        public Flux<Event> stream(List<Msg> messages, AgentRequestOptions options) {
            StreamOptions whole = StreamOptions.builder().incremental(false).build();
            return agent.build().stream(messages, whole);
        }

        @Override
        public void stop(String taskId) {}
    }

    /** The agent's tool. */
    public static class Regions {

        @Tool(name = "regions", description = "Lists the regions")
        public ToolResultBlock regions() {
            return ToolResultBlock.text("north, south");
        }
    }
}
