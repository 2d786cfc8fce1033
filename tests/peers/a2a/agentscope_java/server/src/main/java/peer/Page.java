package peer;

import io.a2a.spec.AgentCapabilities;
import io.a2a.spec.AgentCard;
import io.agentscope.core.a2a.agent.A2aAgent;
import io.agentscope.core.message.Msg;
import io.agentscope.core.message.MsgRole;
import io.agentscope.core.message.TextBlock;
import io.agentscope.core.message.ThinkingBlock;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** AgentScope's own A2A client: GET /page?at=URL asks that server, and returns what it took in. */
@RestController
public class Page {

    private static final Duration ANSWER = Duration.ofSeconds(30);

    @GetMapping(value = "/page", produces = "text/plain;charset=UTF-8")
    String text(@RequestParam("at") String at) {
        A2aAgent agent = A2aAgent.builder().name("page").agentCard(card(at)).build();
        TextBlock question = TextBlock.builder().text("Which regions are there?").build();
        Msg asked = Msg.builder().role(MsgRole.USER).content(List.of(question)).build();
        return agent.call(List.of(asked)).block(ANSWER).getContent().stream()
                .map(
                        block ->
                                block instanceof TextBlock text
                                        ? text.getText()
                                        : block instanceof ThinkingBlock thought
                                                ? thought.getThinking()
                                                : "")
                .collect(Collectors.joining());
    }

    private static AgentCard card(String url) {
        return new AgentCard.Builder()
                .name("peer")
                .description("peer")
                .url(url)
                .version("1")
                .capabilities(new AgentCapabilities.Builder().streaming(true).build())
                .defaultInputModes(List.of("text"))
                .defaultOutputModes(List.of("text"))
                .skills(List.of())
                .build();
    }
}
